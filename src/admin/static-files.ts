/**
 * The dashboard's files at `/`, and those of the API explorer at `/docs` (contract, admin.md 5). They are
 * served with a policy that lets them run nothing but themselves and reach nothing but this listener.
 */

import type { Body } from "../protocol/answer.ts";
import type { Exchange, Head } from "../protocol/exchange.ts";
import type { ShippedFile } from "../storage/shipped-files.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import { adminAnswer, otherMethod } from "./admin-answer.ts";

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  json: "application/json",
  map: "application/json",
};

/** Names and records that people stored are shown by these pages: whatever gets into their markup must not run. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SECURITY_HEADERS: Head = {
  "content-security-policy": PAGE_POLICY,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
};

const HINT_PAGE =
  '<!doctype html><html lang="en"><meta charset="utf-8"><title>PicoMQ</title><p>This PicoMQ was built without its dashboard. The API answers at <a href="/admin/cluster">/admin/cluster</a>.';

interface Content {
  readonly body: Body;
  readonly etag: string;
}

interface StaticFile {
  readonly contentType: string;
  readonly cacheControl: string;
  readonly load: () => Promise<Content>;
  /** Kept from the first request on: what ships is small. */
  content: Content | null;
}

export class StaticFiles {
  readonly #files = new Map<string, StaticFile>();

  constructor(files: readonly ShippedFile[]) {
    for (const file of files) for (const path of pathsOf(file.path)) this.#files.set(path, describeFile(file));
    if (!this.#files.has("/"))
      this.#files.set("/", describeFile({ path: "index.html", bytes: async () => new TextEncoder().encode(HINT_PAGE) }));
  }

  /** Null where there is no file at the path. */
  answer(exchange: Exchange): MaybePromise<Response> | null {
    const file = this.#files.get(exchange.rawPath);
    if (file === undefined) return null;
    if (exchange.method !== "GET" && exchange.method !== "HEAD") return otherMethod(exchange, ["GET", "HEAD"]);
    if (file.content !== null) return contentAnswer(exchange, file, file.content);
    return file.load().then((content) => {
      file.content = content;
      return contentAnswer(exchange, file, content);
    });
  }
}

/** `docs/index.html` is found at `/docs`, `/docs/` and its own path. */
function pathsOf(path: string): string[] {
  if (path === "index.html") return ["/", "/index.html"];
  if (!path.endsWith("/index.html")) return [`/${path}`];
  const folder = `/${path.slice(0, -"/index.html".length)}`;
  return [folder, `${folder}/`, `/${path}`];
}

function describeFile(file: ShippedFile): StaticFile {
  const extension = file.path.slice(file.path.lastIndexOf(".") + 1);
  return {
    contentType: CONTENT_TYPES[extension] ?? "application/octet-stream",
    // What changes under its name is asked for anew, and answered 304; names below `assets/` change with the content.
    cacheControl: file.path.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
    load: async () => {
      const bytes = await file.bytes();
      const hash = new Bun.CryptoHasher("sha256").update(bytes).digest("base64url");
      return { body: new Blob([bytes]), etag: `"${hash.slice(0, 22)}"` };
    },
    content: null,
  };
}

function contentAnswer(exchange: Exchange, file: StaticFile, { body, etag }: Content): Response {
  const head: Head = { ...SECURITY_HEADERS, "cache-control": file.cacheControl, etag };
  if (exchange.headers["if-none-match"] === etag) return adminAnswer(exchange, 304, null, head);
  return adminAnswer(exchange, 200, body, { ...head, "content-type": file.contentType });
}
