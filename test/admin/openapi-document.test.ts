import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { adminRoutes } from "../../src/admin/admin-routes.ts";
import { durableStreamsOperations } from "../../src/admin/openapi-durable-streams.ts";
import { picoOperations } from "../../src/admin/openapi-pico.ts";
import type { OperationAbout } from "../../src/admin/operation-about.ts";
import {
  durableStreamsAppendHeaders,
  durableStreamsCreateHeaders,
  durableStreamsReadQuery,
} from "../../src/protocol/durable-streams-schemas.ts";
import { picoAppendHeaders, picoCreateHeaders, picoListQuery, picoReadQuery } from "../../src/protocol/pico-schemas.ts";
import type { CheckedPart } from "../../src/protocol/schema-check.ts";
import { openAdmin, type TestAdmin, testAdminContext } from "../support/admin-listener.ts";
import { listenTo, type TestListeners, testContext } from "../support/test-listener.ts";
import { TestNode } from "../support/test-node.ts";

const METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH"];

interface Parameter {
  readonly name: string;
  readonly description: string;
  readonly schema: { readonly pattern?: string };
}

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly parameters?: readonly Parameter[] }>>>>;
}

interface Operation {
  readonly path: string;
  readonly method: string;
  readonly about: OperationAbout;
}

const routes = adminRoutes(testAdminContext());
const operations: readonly Operation[] = [...routes, ...picoOperations(), ...durableStreamsOperations()];
const named = operations.map((operation) => [`${operation.method} ${operation.path}`, operation] as const);

let admin: TestAdmin;
let node: TestNode;
let listeners: TestListeners;
let document: Document;
const stopping = new AbortController();

beforeAll(async () => {
  node = await new TestNode().start(1);
  listeners = listenTo(node.streams);
  admin = openAdmin({ source: { durableStreamsUrl: () => listeners.durableStreams, stream: async () => null } });
  admin.pico.open(testContext(node.streams, stopping.signal));
  document = (await (await fetch(`${admin.address}/openapi.json`)).json()) as Document;
});
afterAll(async () => {
  stopping.abort();
  await listeners.stop();
  await admin.listener.stop(0);
  node.kill();
});

test("the document is valid OpenAPI 3.1", async () => {
  expect(document.openapi).toBe("3.1.0");
  const { valid, errors } = await new Validator().validate({ ...document });
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
});

test("what is served is described, and what is described is served", async () => {
  for (const [path, item] of Object.entries(document.paths)) {
    const isDurableStreams = path === "/{name}";
    const base = isDurableStreams ? listeners.durableStreams : admin.address;
    const allowsHead = !path.startsWith("/pico") && !isDurableStreams;
    for (const method of METHODS) {
      // Known by being refused as a method or not: the stream need not be there.
      const { status } = await fetch(base + path.replace("{name}", "not-there"), { method });
      const isDescribed = method.toLowerCase() in item || (method === "HEAD" && allowsHead);
      const isRoot = path === "/pico";
      if (isDescribed) expect({ path, method, status }).not.toMatchObject({ status: 405 });
      // The protocol refuses its root by words of its own.
      else if (isRoot) expect([400, 404, 405]).toContain(status);
      else expect({ path, method, status }).toMatchObject({ status: 405 });
    }
  }
  const described = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).flatMap((method) => (method === "servers" ? [] : [`${method.toUpperCase()} ${path}`])),
  );
  expect(described.sort()).toEqual(named.map(([name]) => name).sort());
});

test("without a Durable Streams listener its operations are left out", async () => {
  const other = openAdmin();
  const { paths } = (await (await fetch(`${other.address}/openapi.json`)).json()) as Document;
  expect(Object.keys(paths)).not.toContain("/{name}");
  await other.listener.stop(0);
});

test.each(named)("%s says what it does, what it takes and all that it answers, with examples", (_, { path, about }) => {
  expect(about.summary).toMatch(/^[A-Z].*[^.]$/);
  expect(about.description).toMatch(/\.$/);
  for (const parameter of about.parameters ?? []) expect(parameter.description).toMatch(/\.$/);
  expect(path.includes("{name}")).toBe((about.parameters ?? []).some((parameter) => parameter.in === "path"));
  for (const answer of Object.values(about.answers)) {
    expect(answer.description).not.toBe("");
    if (answer.schema === undefined) continue;
    expect(answer.example).toBeDefined();
    if (Value.Check(answer.schema, answer.example)) continue;
    expect([...Value.Errors(answer.schema, answer.example)]).toEqual([]);
  }
  expect(Object.keys(about.answers).some((status) => status.startsWith("2"))).toBe(true);
});

describe("a parameter has one source", () => {
  const parts: readonly (readonly [string, string, CheckedPart<Record<string, TSchema>>])[] = [
    ["put", "/pico/{name}", picoCreateHeaders],
    ["post", "/pico/{name}", picoAppendHeaders],
    ["get", "/pico/{name}", picoReadQuery],
    ["get", "/pico", picoListQuery],
    ["put", "/{name}", durableStreamsCreateHeaders],
    ["post", "/{name}", durableStreamsAppendHeaders],
    ["get", "/{name}", durableStreamsReadQuery],
  ];
  test.each(parts)("%s %s describes what it checks", (method, path, part) => {
    const parameters = document.paths[path]?.[method]?.parameters ?? [];
    for (const [name, schema] of Object.entries(part.schema.properties)) {
      if (name === "content-type") continue;
      const described = parameters.find((parameter) => parameter.name.toLowerCase() === name);
      expect(described?.description).toStartWith(schema.title ?? "?");
      expect(described?.schema.pattern).toBe(schema.pattern);
    }
  });
});
