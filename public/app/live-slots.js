/**
 * Places for long-lived connections. A browser opens six to a host over HTTP/1.1, for all tabs together, so
 * seven event streams would silence every tab. At most three are held here, counted over the tabs by locks of the
 * browser; whoever gets none asks in short requests. Where there are no locks (a page that was not loaded
 * from this machine or over TLS), all do.
 */
const SLOTS = ["pico-live-1", "pico-live-2", "pico-live-3"];

/** A function that gives the place back, or null if none is free. */
export async function takeLiveSlot() {
  if (navigator.locks === undefined) return null;
  for (const slot of SLOTS) {
    const release = await tryLock(slot);
    if (release !== null) return release;
  }
  return null;
}

function tryLock(slot) {
  return new Promise((resolve) => {
    const held = navigator.locks.request(slot, { ifAvailable: true }, (lock) => {
      if (lock === null) return resolve(null);
      return new Promise((release) => resolve(release));
    });
    held.catch(() => resolve(null));
  });
}
