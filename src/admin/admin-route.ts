/** A route of the admin listener: what it answers, and what the API description says of it. */
import type { TSchema } from "@sinclair/typebox";
import type { Exchange } from "../protocol/exchange.ts";
import type { MaybePromise } from "../streams/stream-service.ts";

export interface AdminRoute {
  /** `HEAD` is answered like `GET`, without the body. */
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /**
   * As in OpenAPI: `/admin/nodes`, or ending in one parameter, `/admin/streams/{name}`, which takes the whole
   * rest of the path, slashes included.
   */
  readonly path: string;
  readonly about: OperationAbout;
  /** `rest`: what stands for the parameter, as sent, escapes and all; "" for a route without one. What it throws is a 500. */
  handle(exchange: Exchange, rest: string): MaybePromise<Response>;
}

/** An operation, for who reads the API description. */
export interface OperationAbout {
  /** The group that it is shown in. */
  readonly tag: string;
  /** A few words, without a full stop. */
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly ParameterAbout[];
  /** By status. Refused origins (403) and failures (500) are added to each route of the admin listener. */
  readonly answers: Readonly<Record<number, AnswerAbout>>;
}

export interface ParameterAbout {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  /** With its unit and bounds. */
  readonly description: string;
  readonly schema: TSchema;
  readonly example?: string;
}

export interface AnswerAbout {
  readonly description: string;
  /** @default application/json where there is a schema */
  readonly contentType?: string;
  /** Absent: no body. */
  readonly schema?: TSchema;
  readonly example?: unknown;
  readonly headers?: Readonly<Record<string, HeaderAbout>>;
}

export interface HeaderAbout {
  readonly description: string;
  readonly schema: TSchema;
  /** The answer has it always. */
  readonly isRequired?: boolean;
}
