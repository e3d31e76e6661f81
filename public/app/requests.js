/**
 * Requests to the listener that this page came from, and to no other. Each is short and has a deadline:
 * a browser opens six connections to a host, for all its tabs together.
 */

const TIMEOUT_MS = 8000;
/** Of an answer that refuses, this much is shown. */
const ERROR_TEXT_MAX = 600;

/** The node did not answer: no connection, or not in time. */
export class Unreachable extends Error {}

/** The node refused. `message` is in its own words. */
export class Refused extends Error {
  constructor(message, status, code, headers) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** The answer to a request; throws `Unreachable`, or whatever the signal was aborted with. */
export async function send(path, { method = "GET", headers = {}, body, signal, timeoutMs = TIMEOUT_MS } = {}) {
  const deadline = AbortSignal.timeout(timeoutMs);
  const signals = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  try {
    return await fetch(path, { method, headers, body, signal: signals, cache: "no-store", credentials: "same-origin", redirect: "follow" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw unreachable(deadline.aborted, timeoutMs, error);
  }
}

/** As `send`, for answers of JSON; throws `Refused` unless the status is a good one or among `accepted`. */
export async function sendForJson(path, options = {}) {
  const { response, text } = await sendForText(path, options);
  try {
    return { value: JSON.parse(text), headers: response.headers, status: response.status };
  } catch {
    throw new Refused(`the answer to ${path} is not JSON`, response.status, null, response.headers);
  }
}

export async function sendForText(path, options = {}) {
  const response = await send(path, options);
  let text;
  try {
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw unreachable(error.name === "TimeoutError", options.timeoutMs ?? TIMEOUT_MS, error);
  }
  if (!response.ok && !options.accepted?.includes(response.status)) throw refusal(response, text);
  return { response, text };
}

/** The server's own words, from the forms of its listeners; a status where it said nothing. */
export function refusal(response, text) {
  let code = null;
  let message = text.trim();
  try {
    const value = JSON.parse(text);
    if (typeof value?.error === "string") {
      message = typeof value.message === "string" ? value.message : value.error;
      code = value.error;
    }
  } catch {
    // Not every answer is JSON; its text then speaks for itself.
  }
  if (message === "") message = defaultWords(response.status);
  return new Refused(message.slice(0, ERROR_TEXT_MAX), response.status, code, response.headers);
}

function defaultWords(status) {
  if (status === 404) return "not found";
  return `the node answered ${status} without a word`;
}

function unreachable(isLate, timeoutMs, cause) {
  return new Unreachable(isLate ? `no answer within ${timeoutMs / 1000} s` : "the node does not answer", { cause });
}

/** What to show of any error. */
export function wordsOf(error) {
  if (!(error instanceof Refused)) return error.message;
  // The stream listener has codes beside its sentences, the operators' listener sentences only.
  const code = error.code === null || error.code === error.message ? "" : ` ${error.code}`;
  return `${error.message} (${error.status}${code})`;
}
