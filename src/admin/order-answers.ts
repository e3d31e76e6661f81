/** Refusals of routes that take an operator's order as a JSON body, for the API description. */
import { ADMIN_BODY_BYTES_MAX } from "../lib/limits.ts";
import { ErrorAnswer } from "./admin-schemas.ts";
import type { AnswerAbout } from "./operation-about.ts";
import { RETRY_AFTER } from "./stream-operation.ts";

export interface OrderRefusals {
  /** Example of what is said of a body that does not fit. */
  readonly badBody: string;
  /** When the order cannot be taken now. */
  readonly unavailable: string;
}

export function refusalsOfOrder({ badBody, unavailable }: OrderRefusals): Readonly<Record<400 | 413 | 503, AnswerAbout>> {
  return {
    400: refusal("The body is not JSON of the schema", badBody),
    413: refusal("The body is too large", `the request body has 70000 bytes, the limit is ${ADMIN_BODY_BYTES_MAX}`),
    503: { ...refusal(unavailable, "this node is starting; try again"), headers: RETRY_AFTER },
  };
}

/** An answer with an error in it. */
export function refusal(description: string, error: string): AnswerAbout {
  return { description, schema: ErrorAnswer, example: { error } };
}
