/** Waiting for what another process does: its state is asked for until it is as it should be. */

const POLL_MS = 20;
const LIMIT_MS = 30_000;

/** Resolves once `condition` does with true; rejects, naming `what`, after `limitMs`. */
export async function eventually(what: string, condition: () => Promise<boolean>, limitMs = LIMIT_MS): Promise<void> {
  const startedMs = performance.now();
  while (!(await condition())) {
    if (performance.now() - startedMs > limitMs) throw new Error(`waited ${limitMs} ms in vain: ${what}`);
    await Bun.sleep(POLL_MS);
  }
}
