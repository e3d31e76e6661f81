/** Requests of the two protocols, as the writers of the cluster tests make them, and what their answers mean. */
import type { HttpAnswer, HttpRequest } from "./http-connection.ts";

export type Protocol = "pico" | "durable-streams";

export interface ProducerPosition {
  readonly id: string;
  readonly seq: number;
}

export interface AppendForm {
  readonly protocol: Protocol;
  readonly name: string;
  readonly isJson: boolean;
  /** Stored bodies; empty for a close alone. */
  readonly bodies: readonly string[];
  /** How several Pico records travel. */
  readonly batch: "json" | "binary";
  readonly close: boolean;
  readonly producer: ProducerPosition | null;
}

export type AppendMeaning =
  /** `offset` of the first record; null where nothing was written: a repeat, or a close alone. */
  | { readonly kind: "taken"; readonly offset: number | null; readonly tail: number; readonly isClosed: boolean }
  | { readonly kind: "closed" }
  | { readonly kind: "missing" }
  /** Not now, or no answer: whether it took effect is not known. */
  | { readonly kind: "open" }
  | { readonly kind: "wrong"; readonly what: string };

const BATCH_TYPES = { json: "application/vnd.picomq.batch+json", binary: "application/vnd.picomq.batch" } as const;

export function contentTypeOf(isJson: boolean): string {
  return isJson ? "application/json" : "text/plain";
}

export function createRequest(protocol: Protocol, name: string, isJson: boolean, bodies: readonly string[]): HttpRequest {
  const contentType = contentTypeOf(isJson);
  return { method: "PUT", path: name, headers: { "content-type": contentType }, body: firstBody(protocol, isJson, bodies) };
}

/** A create carries at most one record in the stream's own type, or for Durable Streams an array. */
function firstBody(protocol: Protocol, isJson: boolean, bodies: readonly string[]): string {
  return protocol === "durable-streams" && isJson && bodies.length > 0 ? `[${bodies.join(",")}]` : (bodies[0] ?? "");
}

export function appendRequest(form: AppendForm): HttpRequest {
  return form.protocol === "pico" ? picoAppend(form) : durableStreamsAppend(form);
}

function picoAppend({ name, isJson, bodies, batch, close, producer }: AppendForm): HttpRequest {
  const headers: Record<string, string> = { "content-type": bodies.length > 1 ? BATCH_TYPES[batch] : contentTypeOf(isJson) };
  if (close) headers["pico-closed"] = "true";
  if (producer !== null) {
    headers["pico-producer-id"] = producer.id;
    headers["pico-producer-epoch"] = "0";
    headers["pico-producer-seq"] = String(producer.seq);
  }
  const body = bodies.length <= 1 ? (bodies[0] ?? "") : batch === "json" ? jsonBatch(bodies) : binaryBatch(bodies);
  return { method: "POST", path: name, headers, body };
}

function durableStreamsAppend({ name, isJson, bodies, close, producer }: AppendForm): HttpRequest {
  const headers: Record<string, string> = { "content-type": contentTypeOf(isJson) };
  if (close) headers["stream-closed"] = "true";
  if (producer !== null) {
    headers["producer-id"] = producer.id;
    headers["producer-epoch"] = "0";
    headers["producer-seq"] = String(producer.seq);
  }
  return { method: "POST", path: name, headers, body: isJson && bodies.length > 0 ? `[${bodies.join(",")}]` : (bodies[0] ?? "") };
}

function jsonBatch(bodies: readonly string[]): string {
  return JSON.stringify({ records: bodies.map((body) => ({ body })) });
}

/** Contract, Pico 12.1. */
function binaryBatch(bodies: readonly string[]): Buffer {
  const parts = [Buffer.alloc(5)];
  parts[0]?.writeUInt8(1, 0);
  parts[0]?.writeUInt32BE(bodies.length, 1);
  for (const body of bodies) {
    const bytes = Buffer.from(body);
    const head = Buffer.alloc(12);
    head.writeInt32BE(-1, 0);
    head.writeInt32BE(bytes.length, 8);
    parts.push(head, bytes);
  }
  return Buffer.concat(parts);
}

export function readAppendAnswer(form: AppendForm, answer: HttpAnswer | null): AppendMeaning {
  if (answer === null) return { kind: "open" };
  const { status, headers } = answer;
  const isPico = form.protocol === "pico";
  const isClosed = headers.get(isPico ? "pico-closed" : "stream-closed") === "true";
  switch (status) {
    case 200:
    case 204: {
      const tail = Number(headers.get(isPico ? "pico-next-seq" : "stream-next-offset"));
      const isRepeat = isPico ? !headers.has("pico-start-seq") : form.producer !== null && status === 204;
      const offset =
        isRepeat || form.bodies.length === 0 ? null : isPico ? Number(headers.get("pico-start-seq")) : tail - form.bodies.length;
      return { kind: "taken", offset, tail, isClosed };
    }
    case 404:
      return { kind: "missing" };
    case 409:
      return isClosed ? { kind: "closed" } : { kind: "wrong", what: describe(answer) };
    case 503:
      return headers.has("retry-after") ? { kind: "open" } : { kind: "wrong", what: "503 without Retry-After" };
    case 500:
      return /"(unknown_outcome|durability)"/.test(answer.body.toString()) || !isPico
        ? { kind: "open" }
        : { kind: "wrong", what: describe(answer) };
    default:
      return { kind: "wrong", what: describe(answer) };
  }
}

export function describe(answer: HttpAnswer | null): string {
  return answer === null ? "no answer" : `${answer.status} ${answer.body.toString("utf8", 0, 200)}`;
}
