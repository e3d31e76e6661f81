/**
 * The admin API of a node as the command line asks it: one attempt a call, within a time and a size, behind at most
 * a few redirects. An answer that is not what the API description promises is a failure, never a guess.
 */
import { STATUS_CODES } from "node:http";
import type { Static, TSchema } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ClusterAnswer, NodesAnswer, StreamAnswer } from "../admin/admin-schemas.ts";
import { GcAnswer, type GcOrder } from "../admin/gc-schemas.ts";
import { ScrubAnswer, type ScrubOrder } from "../admin/scrub-schemas.ts";
import { codeByStatus } from "../client/refusal.ts";
import { isStreamError, StreamError } from "../client/stream-error.ts";
import { normalizeName, pathOf } from "../client/stream-path.ts";
import { type HttpRequest, type Refusal, Transport } from "../client/transport.ts";
import { utf8Decoder, utf8Encoder } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { CLIENT_TIMEOUT_MS } from "../lib/limits.ts";
import { shorten } from "../protocol/shorten.ts";
import { type AdminSettings, readAdminSettings } from "./admin-flags.ts";
import { describeFailure, isRefusedConnection } from "./failure.ts";
import type { FlagValues } from "./flag-values.ts";

/** As of ES2026; the types do not have it yet. */
const { rawJSON } = JSON as JSON & { rawJSON(text: string): unknown };
const parseWithSource = JSON.parse as (
  text: string,
  revive: (key: string, value: unknown, context: { source?: string }) => unknown,
) => unknown;

/** A call that failed; `message` is what a person reads. */
export class AdminFailure extends Error {
  override readonly name = "AdminFailure";

  constructor(
    message: string,
    /** HTTP status; null where no node answered. */
    readonly status: number | null,
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

export interface AdminReply<Answer> {
  readonly answer: Answer;
  /** The whole answer, members that this program does not know included, with two spaces of indent and a line end. */
  toJson(): string;
}

export class AdminClient {
  readonly #transport: Transport;
  readonly #endpoint: string;

  private constructor({ endpoint, token }: AdminSettings) {
    this.#endpoint = endpoint;
    const options = { url: endpoint, timeoutMs: CLIENT_TIMEOUT_MS, retry: { attemptsMax: 1 } };
    this.#transport = new Transport(token === null ? options : { ...options, token }, toStreamError);
  }

  /** Of the node that the flags of a command name. Throws `settings`. */
  static of(values: FlagValues): AdminClient {
    return new AdminClient(readAdminSettings(values));
  }

  cluster(): Promise<AdminReply<Static<typeof ClusterAnswer>>> {
    return this.#call(ClusterAnswer, { method: "GET", path: "/admin/cluster", isRepeatable: true });
  }

  nodes(): Promise<AdminReply<Static<typeof NodesAnswer>>> {
    return this.#call(NodesAnswer, { method: "GET", path: "/admin/nodes", isRepeatable: true });
  }

  /** Throws `settings` for what cannot be a name. */
  stream(name: string): Promise<AdminReply<Static<typeof StreamAnswer>>> {
    return this.#call(StreamAnswer, { method: "GET", path: `/admin/streams${streamPath(name)}`, isRepeatable: true });
  }

  scrub(): Promise<AdminReply<Static<typeof ScrubAnswer>>> {
    return this.#call(ScrubAnswer, { method: "GET", path: "/admin/scrub", isRepeatable: true });
  }

  /** Rejects with status 409 while one is under way. */
  startScrub(order: Static<typeof ScrubOrder>): Promise<AdminReply<Static<typeof ScrubAnswer>>> {
    return this.#call(ScrubAnswer, { method: "POST", path: "/admin/scrub", ...jsonBody(order), isRepeatable: true });
  }

  holdRemoval(order: Static<typeof GcOrder>): Promise<AdminReply<Static<typeof GcAnswer>>> {
    return this.#call(GcAnswer, { method: "POST", path: "/admin/gc", ...jsonBody(order), isRepeatable: true });
  }

  async #call<Schema extends TSchema>(schema: Schema, request: HttpRequest): Promise<AdminReply<Static<Schema>>> {
    try {
      const { body } = await this.#transport.request(request);
      return readReply(schema, utf8Decoder.decode(body));
    } catch (error) {
      if (!isStreamError(error)) throw error;
      if (error.status !== null) throw new AdminFailure(this.#describeRefusal(error.status, error.message), error.status, error);
      const remedy = isRefusedConnection(error) ? "; start a node with pico serve, or name its admin listener with --admin-endpoint" : "";
      throw new AdminFailure(`${describeFailure(error)}${remedy}`, null, error);
    }
  }

  #describeRefusal(status: number, message: string): string {
    const what = message === "" ? `no reason given; is there an admin listener at ${this.#endpoint}?` : message;
    return `${status} ${STATUS_CODES[status] ?? ""}: ${what}`.replace(" :", ":");
  }
}

function jsonBody(value: unknown): Pick<HttpRequest, "headers" | "body"> {
  return { headers: { "content-type": "application/json" }, body: utf8Encoder.encode(JSON.stringify(value)) };
}

function streamPath(name: string): string {
  try {
    return pathOf(normalizeName(name));
  } catch (error) {
    throw isStreamError(error, "bad_request") ? new PicoError("settings", error.message, { flag: "STREAM" }, error) : error;
  }
}

function toStreamError({ status, text }: Refusal): StreamError {
  return new StreamError(codeByStatus(status), readMessage(text), { status });
}

/** The sentence of an error; a stream listener has it beside a code. Empty where there is none, as in answers of proxies. */
function readMessage(text: string): string {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body !== "object" || body === null) return "";
    if ("message" in body && typeof body.message === "string") return body.message;
    return "error" in body && typeof body.error === "string" ? body.error : "";
  } catch {
    return "";
  }
}

function readReply<Schema extends TSchema>(schema: Schema, text: string): AdminReply<Static<Schema>> {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch (error) {
    throw new StreamError("malformed_answer", "the answer is no JSON; is that the admin listener of a node?", { cause: error });
  }
  const compiled = TypeCompiler.Compile(schema);
  if (!compiled.Check(answer)) {
    const first = compiled.Errors(answer).First();
    const where = first === undefined ? "" : `: ${first.path || "/"} is ${shorten(String(JSON.stringify(first.value)))}, ${first.message}`;
    throw new StreamError("malformed_answer", `the answer is not of this version of the admin API${where}`);
  }
  return { answer, toJson: () => `${JSON.stringify(parseWithSource(text, keepDigits), null, 2)}\n` };
}

/** A number keeps all its digits, also where it is larger than those of JavaScript. */
function keepDigits(_: string, value: unknown, { source }: { source?: string }): unknown {
  return typeof value === "number" && !Number.isSafeInteger(value) && source !== undefined ? rawJSON(source) : value;
}
