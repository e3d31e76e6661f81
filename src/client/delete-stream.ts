/** `DELETE`, the same in both protocols. */
import { isStreamError } from "./stream-error.ts";
import type { Transport } from "./transport.ts";

/** False: there was none. What is missing only behind an attempt without an answer may have been deleted by it: true. */
export async function deleteStream(transport: Transport, path: string, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await transport.request({ method: "DELETE", path, isRepeatable: true, signal });
    return true;
  } catch (error) {
    if (isStreamError(error, "not_found")) return error.isOutcomeUnknown;
    throw error;
  }
}
