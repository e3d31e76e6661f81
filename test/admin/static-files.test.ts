import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { HttpListener } from "../../src/protocol/http-listener.ts";
import { findShippedFiles, type ShippedFile } from "../../src/storage/shipped-files.ts";
import { openAdmin } from "../support/admin-listener.ts";

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const folder = join(import.meta.dir, "../../public");
function shipped(path: string, text: string): ShippedFile {
  return { path, bytes: async () => new TextEncoder().encode(text) };
}

describe("files that ship", () => {
  let listener: HttpListener;
  let address: string;
  beforeAll(() => {
    ({ listener, address } = openAdmin({ files: findShippedFiles() }));
  });
  afterAll(() => listener.stop(0));

  test("every file below public/ is served as it is", async () => {
    const paths = readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(entry.parentPath, entry.name).slice(folder.length + 1)] : [],
    );
    expect(paths).toContain("index.html");
    for (const path of paths) {
      const answer = await fetch(`${address}/${path}`);
      expect({ path, status: answer.status }).toEqual({ path, status: 200 });
      expect(Buffer.from(await answer.arrayBuffer()).equals(readFileSync(join(folder, path)))).toBe(true);
    }
  });

  test("the explorer and all that it loads are served, and name no other host", async () => {
    const page = await (await fetch(`${address}/docs`)).text();
    const loaded = [...page.matchAll(/(?:src|href)="([^"#][^"]*)"/g)].map(([, target = ""]) => target);
    expect(loaded).toContain("/docs/swagger-ui-bundle.js");
    for (const target of loaded) {
      expect(target).toStartWith("/");
      expect((await fetch(address + target)).status).toBe(200);
    }
    for (const licence of ["LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"]) {
      const answer = await fetch(`${address}/docs/${licence}`);
      expect(answer.status).toBe(200);
      expect((await answer.text()).length).toBeGreaterThan(0);
    }
  });

  test("a link on a foreign page opens the pages in a tab, and nothing else of the listener", async () => {
    const ask = async (path: string, mode: string, dest: string, method = "GET") => {
      const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": mode, "sec-fetch-dest": dest };
      return (await fetch(address + path, { method, headers })).status;
    };
    for (const path of ["/", "/docs"]) expect(await ask(path, "navigate", "document")).toBe(200);
    for (const path of ["/health", "/admin/cluster", "/pico/", "/openapi.json", "/nothing"]) {
      expect({ path, status: await ask(path, "navigate", "document") }).toEqual({ path, status: 403 });
    }
    expect(await ask("/", "navigate", "iframe")).toBe(403);
    expect(await ask("/app/main.js", "no-cors", "script")).toBe(403);
    expect(await ask("/", "navigate", "document", "POST")).toBe(403);
  });

  test("the first page is at /, with the headers that keep what it shows from running", async () => {
    const answer = await fetch(`${address}/`);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("content-security-policy")).toBe(POLICY);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(answer.headers.get("cross-origin-resource-policy")).toBe("same-origin");
    expect(await answer.text()).toBe(readFileSync(join(folder, "index.html"), "utf8"));
  });
});

describe("static files", () => {
  let listener: HttpListener;
  let address: string;
  beforeAll(() => {
    ({ listener, address } = openAdmin({
      files: [
        shipped("index.html", "<p>page"),
        shipped("docs/index.html", "<p>docs"),
        shipped("app.js", "1"),
        shipped("style.css", "a{}"),
        shipped("icon.svg", "<svg/>"),
        shipped("data.json", "{}"),
        shipped("app.js.map", "{}"),
        shipped("font.woff2", "w"),
        shipped("assets/chart-5f2a.js", "2"),
      ],
    }));
  });
  afterAll(() => listener.stop(0));

  test.each([
    ["/app.js", "text/javascript; charset=utf-8"],
    ["/style.css", "text/css; charset=utf-8"],
    ["/icon.svg", "image/svg+xml"],
    ["/data.json", "application/json"],
    ["/app.js.map", "application/json"],
    ["/font.woff2", "application/octet-stream"],
    ["/docs", "text/html; charset=utf-8"],
    ["/docs/", "text/html; charset=utf-8"],
    ["/docs/index.html", "text/html; charset=utf-8"],
  ])("%s is %s, asked for anew each time", async (path, contentType) => {
    const answer = await fetch(address + path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe(contentType);
    expect(answer.headers.get("cache-control")).toBe("no-cache");
    expect(answer.headers.get("content-security-policy")).toBe(POLICY);
  });

  test("a file that the client has is 304 without a body, and another content has another ETag", async () => {
    const etags: string[] = [];
    for (const path of ["/app.js", "/style.css"]) {
      const etag = (await fetch(address + path)).headers.get("etag") ?? "";
      etags.push(etag);
      const again = await fetch(address + path, { headers: { "if-none-match": etag } });
      expect(again.status).toBe(304);
      expect(again.headers.get("etag")).toBe(etag);
      expect(await again.text()).toBe("");
    }
    expect(new Set(etags).size).toBe(2);
    expect((await fetch(`${address}/app.js`, { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  });

  test("names below assets/ never change their content, so they are kept", async () => {
    const answer = await fetch(`${address}/assets/chart-5f2a.js`);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  });

  test("HEAD has the headers of GET, with the length, and no body", async () => {
    const answer = await fetch(`${address}/style.css`, { method: "HEAD" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-length")).toBe("3");
    expect(answer.headers.get("content-type")).toBe("text/css; charset=utf-8");
    expect(await answer.text()).toBe("");
  });

  test("another method is 405 with Allow", async () => {
    const answer = await fetch(`${address}/app.js`, { method: "POST", body: "x" });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
  });

  test("what is not there is a 404 in JSON that names the path", async () => {
    for (const path of ["/missing.js", "/assets", "/docs/missing", "/%2e%2e/package.json", "/app.js/"]) {
      const answer = await fetch(address + path);
      expect(answer.status).toBe(404);
      expect(answer.headers.get("content-type")).toBe("application/json");
      expect(await answer.json()).toEqual({ error: expect.stringContaining("there is nothing at /") });
    }
  });
});

test("a build without the dashboard says so at /", async () => {
  const { listener, address } = openAdmin();
  const answer = await fetch(`${address}/`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(await answer.text()).toContain("PicoMQ");
  await listener.stop(0);
});
