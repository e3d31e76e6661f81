/** Comparisons of the suite: they throw what was expected and what came. */
import { dequal } from "dequal";

export function equal(actual: unknown, expected: unknown, what: string): void {
  if (!dequal(actual, expected)) throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)}`);
}

export function isTrue(condition: boolean, what: string): void {
  if (!condition) throw new Error(`not so: ${what}`);
}

export function matches(text: string | null, pattern: RegExp, what: string): void {
  if (text === null || !pattern.test(text)) throw new Error(`${what}: expected ${pattern}, got ${show(text)}`);
}

/** The answer's status, with its body in the message if it is another. */
export function status(answer: { readonly status: number; readonly text: string }, expected: number, what = "status"): void {
  if (answer.status !== expected) throw new Error(`${what}: expected ${expected}, got ${answer.status} ${answer.text.slice(0, 200)}`);
}

/** An error answer of the protocol (§2). */
export function refused(
  answer: { readonly status: number; readonly text: string; readonly headers: Headers },
  expected: number,
  code: string,
  what = "refusal",
): void {
  status(answer, expected, what);
  equal(answer.headers.get("content-type"), "application/json", `${what}: content type`);
  equal(answer.headers.get("cache-control"), "no-store", `${what}: cache-control`);
  equal((JSON.parse(answer.text) as { error: unknown }).error, code, `${what}: code`);
}

function show(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === "bigint" ? `${member}n` : member));
}
