import { isPicoError } from "../../src/lib/errors.ts";

/** Code of the error that `run` ends in; null where it succeeds. Other errors pass through. */
export async function codeOf(run: () => unknown): Promise<string | null> {
  try {
    await run();
    return null;
  } catch (error) {
    if (isPicoError(error)) return error.code;
    throw error;
  }
}
