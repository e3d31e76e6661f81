/**
 * The API description: OpenAPI 3.1, whose schemas are those of JSON and so TypeBox's as they are. Made by us
 * and not by the framework's plugin, which sees only the framework's own routes, leaves out paths that end in a
 * wildcard, which is every stream, and writes `null` in a way that OpenAPI 3.0 does not have.
 */
import type { TSchema } from "@sinclair/typebox";
import { version } from "../../package.json";
import type { AdminRoute } from "./admin-route.ts";
import { ErrorAnswer } from "./admin-schemas.ts";
import { DURABLE_STREAMS_PATH, durableStreamsOperations } from "./openapi-durable-streams.ts";
import { picoOperations } from "./openapi-pico.ts";
import type { AnswerAbout, BodyAbout, ContentAbout, HeaderAbout, OperationAbout, ParameterAbout } from "./operation-about.ts";

const DESCRIPTION = `The operators' API of a node, and its streams over both protocols.

Every path of the admin listener answers \`OPTIONS\`, and \`HEAD\` where it answers \`GET\`. Errors of the admin API are \`{"error": sentence}\`.
Streams are served by the Pico protocol below \`/pico\` of this listener, which is for pages of this listener (on the Pico listener's own port names have no \`/pico\` in front),
and by Durable Streams on a port of its own, which this page cannot ask.`;

/** What every operation of the admin API may answer. */
const ADMIN_ANSWERS: Readonly<Record<number, AnswerAbout>> = {
  403: {
    description: "A web page of an origin or host that is not allowed (`--admin-cors-origin`, `--allowed-host`)",
    schema: ErrorAnswer,
    example: { error: "refused: the origin is not allowed; name it with --admin-cors-origin" },
  },
  500: {
    description: "The node failed; its log has the cause",
    schema: ErrorAnswer,
    example: { error: "the server failed; its log has the cause" },
  },
};

export interface OpenApiOptions {
  /** Where clients reach the Durable Streams listener; null where there is none. */
  readonly durableStreamsUrl: string | null;
}

type Json = Record<string, unknown>;

export function openApiDocument(routes: readonly AdminRoute[], { durableStreamsUrl }: OpenApiOptions): Json {
  const schemas = new SchemaTable();
  const paths = new Map<string, Json>();
  const add = (path: string, method: string, about: OperationAbout) => {
    const item = paths.get(path) ?? {};
    paths.set(path, item);
    item[method.toLowerCase()] = describeOperation(schemas, path, method, about);
  };
  for (const { path, method, about } of routes) add(path, method, { ...about, answers: { ...ADMIN_ANSWERS, ...about.answers } });
  for (const { path, method, about } of picoOperations()) add(path, method, about);
  if (durableStreamsUrl !== null) {
    for (const { path, method, about } of durableStreamsOperations()) add(path, method, about);
    const item = paths.get(DURABLE_STREAMS_PATH);
    if (item !== undefined) item.servers = [{ url: durableStreamsUrl, description: "The Durable Streams listener" }];
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "PicoMQ",
      version,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "This listener" }],
    tags: [...tagsOf(paths)].map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    components: { schemas: schemas.all() },
  };
}

/** Schemas with an id are written once, and referred to by it. */
class SchemaTable {
  readonly #schemas = new Map<string, unknown>();

  add(schema: TSchema): unknown {
    return this.#convert(schema);
  }

  all(): Json {
    return Object.fromEntries(this.#schemas);
  }

  #convert(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#convert(item));
    if (typeof value !== "object" || value === null) return value;
    const { $id, ...members } = value as Json;
    const converted = Object.fromEntries(Object.entries(members).map(([key, member]) => [key, this.#convert(member)]));
    if (typeof $id !== "string") return converted;
    this.#schemas.set($id, converted);
    return { $ref: `#/components/schemas/${$id}` };
  }
}

function describeOperation(schemas: SchemaTable, path: string, method: string, about: OperationAbout): Json {
  const { tag, summary, description, parameters = [], body, answers } = about;
  return {
    tags: [tag],
    operationId: operationId(method, path),
    summary,
    description,
    ...(parameters.length === 0 ? {} : { parameters: parameters.map((parameter) => describeParameter(schemas, parameter)) }),
    ...(body === undefined ? {} : { requestBody: describeBody(schemas, body) }),
    responses: Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, describeAnswer(schemas, answer)])),
  };
}

function describeBody(schemas: SchemaTable, { description, isRequired = false, contents }: BodyAbout): Json {
  return { description, ...(isRequired ? { required: true } : {}), content: describeContents(schemas, contents) };
}

function describeParameter(schemas: SchemaTable, { name, in: place, description, schema, example }: ParameterAbout): Json {
  return {
    name,
    in: place,
    ...(place === "path" ? { required: true } : {}),
    description,
    schema: schemas.add(schema),
    ...(example === undefined ? {} : { example }),
  };
}

function describeAnswer(schemas: SchemaTable, answer: AnswerAbout): Json {
  const { description, schema, example, contentType = "application/json", headers } = answer;
  const contents: Record<string, ContentAbout> = { ...answer.contents };
  if (schema !== undefined) contents[contentType] = { schema, example };
  return {
    description,
    ...(headers === undefined ? {} : { headers: describeHeaders(schemas, headers) }),
    ...(Object.keys(contents).length === 0 ? {} : { content: describeContents(schemas, contents) }),
  };
}

function describeHeaders(schemas: SchemaTable, headers: Readonly<Record<string, HeaderAbout>>): Json {
  return Object.fromEntries(
    Object.entries(headers).map(([name, { description, schema, isRequired = false }]) => [
      name,
      { description, schema: schemas.add(schema), ...(isRequired ? { required: true } : {}) },
    ]),
  );
}

function describeContents(schemas: SchemaTable, contents: Readonly<Record<string, ContentAbout>>): Json {
  return Object.fromEntries(
    Object.entries(contents).map(([type, { schema, example }]) => [
      type,
      { ...(schema === undefined ? {} : { schema: schemas.add(schema) }), ...(example === undefined ? {} : { example }) },
    ]),
  );
}

/** `get /admin/streams/{name}` is `getAdminStreamsName`. */
function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  if (path === DURABLE_STREAMS_PATH) words.unshift("DurableStreams");
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

function tagsOf(paths: ReadonlyMap<string, Json>): ReadonlySet<string> {
  const tags = new Set<string>();
  for (const item of paths.values()) {
    for (const operation of Object.values(item)) {
      if (typeof operation !== "object" || operation === null || !("tags" in operation) || !Array.isArray(operation.tags)) continue;
      for (const tag of operation.tags) tags.add(String(tag));
    }
  }
  return tags;
}
