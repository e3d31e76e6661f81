/** An operation of a listener, for who reads the API description. */
import type { TSchema } from "@sinclair/typebox";

export interface OperationAbout {
  /** The group that it is shown in. */
  readonly tag: string;
  /** A few words, without a full stop. */
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly ParameterAbout[];
  readonly body?: BodyAbout;
  /** By status. What any request may get is added where the operations are put together. */
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

export interface BodyAbout {
  readonly description: string;
  /** A request without one is refused. @default false */
  readonly isRequired?: boolean;
  readonly contents: Readonly<Record<string, ContentAbout>>;
}

export interface ContentAbout {
  /** Absent where a schema cannot say it, as of event streams. */
  readonly schema?: TSchema;
  readonly example?: unknown;
}

export interface AnswerAbout {
  readonly description: string;
  /** @default application/json where there is a schema */
  readonly contentType?: string;
  /** Absent: no body, or the ones of `contents`. */
  readonly schema?: TSchema;
  readonly example?: unknown;
  /** Where the body may be of several types. */
  readonly contents?: Readonly<Record<string, ContentAbout>>;
  readonly headers?: Readonly<Record<string, HeaderAbout>>;
}

export interface HeaderAbout {
  readonly description: string;
  readonly schema: TSchema;
  /** The answer has it always. */
  readonly isRequired?: boolean;
}
