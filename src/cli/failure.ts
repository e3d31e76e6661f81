/** What a person reads about a failure of the client: `<code> (<status>): <message> [next=<pos>]`, as far as it is known. */
import { isStreamError, type StreamError, type StreamErrorCode } from "../client/stream-error.ts";
import { messageOf, PicoError } from "../lib/errors.ts";
import { errnoOf } from "../storage/file-error.ts";
import { toPlainLine } from "./terminal-text.ts";

/** Nothing that a server said: no answer came, or none of the protocol. */
const TRANSPORT_CODES: readonly StreamErrorCode[] = ["transport", "redirect", "malformed_answer"];

export function describeFailure(error: unknown): string {
  return isStreamError(error) ? describeStreamError(error) : messageOf(error);
}

function describeStreamError(error: StreamError): string {
  const { wireCode, status, facts, isOutcomeUnknown } = error;
  // The runtime's own words about it are of no help.
  const message = isRefusedConnection(error)
    ? error.message.replace(/: (ECONNREFUSED|Unable to connect|fetch failed).*$/s, ": connection refused")
    : (missingStream(error) ?? error.message);
  const retryAfterSeconds = Math.ceil((facts.retryAfterMs ?? 0) / 1000);
  const code = wireCode ?? (TRANSPORT_CODES.includes(error.code) ? "transport" : error.code);
  return [
    `${code}${status === null ? "" : ` (${status})`}: ${message}`,
    facts.attempts === undefined ? "" : ` (${facts.attempts} attempts)`,
    retryAfterSeconds === 0 ? "" : `; ask again after ${retryAfterSeconds} s`,
    facts.tail === undefined ? "" : ` [next=${facts.tail}]`,
    isOutcomeUnknown && wireCode !== null ? "; whether it took effect is not known" : "",
  ].join("");
}

/** The answer to a `HEAD` has no body that could say it. */
function missingStream({ status, message }: StreamError): string | null {
  const path = status === 404 ? /^HEAD (\S+): answered with 404$/.exec(message)?.[1] : undefined;
  return path === undefined ? null : `there is no stream ${path}; pico create makes one`;
}

/** Nobody listens there. */
export function isRefusedConnection({ code, cause }: StreamError): boolean {
  const causes = [cause, cause instanceof Error ? cause.cause : null].map(errnoOf);
  return code === "transport" && (causes.includes("ECONNREFUSED") || causes.includes("ConnectionRefused"));
}

/** A protocol has no such operation: exit code 1. */
export function unsupported(message: string): PicoError {
  return new PicoError("bad_request", `unsupported: ${message}`, { what: "protocol" });
}

/** What a person reads about a failure: one line. */
export function failureLine(error: unknown): string {
  const isRefused = isStreamError(error) && isRefusedConnection(error);
  const remedy = isRefused ? "; start a server with pico serve, or name another one with --endpoint" : "";
  return `pico: ${toPlainLine(describeFailure(error))}${remedy}`;
}
