/** Bodies that operators send: small JSON values, checked against the schema that describes them. */
import type { Static, TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { utf8Decoder } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { ADMIN_BODY_BYTES_MAX } from "../lib/limits.ts";
import { mimeOf } from "../lib/mime.ts";
import type { Exchange } from "../protocol/exchange.ts";
import { RequestBodies } from "../protocol/request-body.ts";
import { shorten } from "../protocol/shorten.ts";

const JSON_TYPE = "application/json";

export class JsonBodies<Schema extends TSchema> {
  readonly #check: TypeCheck<Schema>;
  readonly #bodies = new RequestBodies(ADMIN_BODY_BYTES_MAX);

  constructor(schema: Schema) {
    this.#check = TypeCompiler.Compile(schema);
  }

  /** `whenEmpty` stands for no body. Throws `bad_request` and `payload_too_large`. */
  async read<Empty>(exchange: Exchange, whenEmpty: Empty): Promise<Static<Schema> | Empty> {
    const bytes = await this.#bodies.read(exchange);
    if (bytes.length === 0) return whenEmpty;
    const contentType = exchange.headers["content-type"] ?? "";
    if (mimeOf(contentType) !== JSON_TYPE) {
      throw refused(`header Content-Type must be ${JSON_TYPE}; it is ${shorten(contentType)}`, "content-type");
    }
    const value = parse(bytes);
    if (this.#check.Check(value)) return value;
    const first = this.#check.Errors(value).First();
    const where = first === undefined || first.path === "" ? "the body" : `${first.path.slice(1)} of the body`;
    throw refused(
      `${where} is ${shorten(JSON.stringify(first?.value ?? value) ?? "")}: ${first?.message ?? "not what is taken here"}`,
      "body",
    );
  }
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8Decoder.decode(bytes));
  } catch (error) {
    throw refused("the body is no JSON", "body", error);
  }
}

function refused(message: string, what: string, cause?: unknown): PicoError {
  return new PicoError("bad_request", message, { what }, cause);
}
