/** The pause behind the n-th failure in a row: it doubles up to 10 s, with jitter, so that many tabs do not come at once. */
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 10_000;

export function pauseAfter(failures) {
  const ceiling = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** Math.min(failures, 10));
  return ceiling * (0.5 + Math.random() / 2);
}

/** Resolves after a while, or as soon as the signal is aborted. */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });
}
