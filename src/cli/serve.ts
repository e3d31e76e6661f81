/**
 * The life of `pico serve`: start a node, say where it listens, and stop it when told to. Lines for
 * people and scripts that wait for the node go to stdout; everything else is the log's.
 *
 * The first SIGINT or SIGTERM stops the node gracefully, a second one ends the process at once: the
 * storage is made for that, and the next start recovers.
 */
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { RunningNode, StartNode } from "../node/node.ts";
import type { Settings } from "../node/settings.ts";

/** What the command touches of its process. */
export interface ServeProcess {
  /** Writes one line to stdout. */
  print(line: string): void;
  /** Calls `listener` at each SIGINT and SIGTERM. */
  onStopSignal(listener: (signal: string) => void): void;
  /** Ends the process without waiting for anything. */
  exitAtOnce(exitCode: number): void;
  /** Monotonic time between signals, and the limit of a stop that comes during the start. */
  readonly clock: Clock;
}

/**
 * One press of Ctrl-C reaches the node several times when a script runner passes on what the terminal has
 * already sent to all of them; copies come within milliseconds.
 */
const SIGNAL_COPY_MS = 100;
/** As a shell reports an end by SIGINT. */
const EXIT_CODE_INTERRUPTED = 130;

/**
 * Resolves with the exit code once the node has stopped: 0 after a graceful stop. Rejects where the node could not
 * start, failed while running, or could not stop.
 */
export async function serve(settings: Settings, log: Logger, start: StartNode, self: ServeProcess): Promise<number> {
  const stopSignal = firstStopSignal(self);
  const stopping = new AbortController();
  const starting = start(settings, log, stopping.signal);
  starting.catch(() => {}); // Awaited below; a signal may come first.
  const first = await Promise.race([starting, stopSignal]);
  if (typeof first === "string") {
    stopping.abort();
    const deadline = self.clock.schedule(settings.stopTimeoutSeconds * 1000, () => self.exitAtOnce(EXIT_CODE_INTERRUPTED));
    const node = await starting.catch((error: unknown) => {
      // Whatever else hindered it is met again by the next start.
      log.info("the start was cut short", { reason: first, error });
      return null;
    });
    deadline.cancel();
    if (node !== null) return stop(node, first, self);
    self.print("shutting down");
    return 0;
  }

  announce(first, settings, self);
  const end = await Promise.race([stopSignal, first.stopped]);
  if (typeof end === "string") return stop(first, end, self);
  throw end.error;
}

function announce(node: RunningNode, settings: Settings, self: ServeProcess): void {
  const { pico, durableStreams, admin } = node.addresses;
  const main = pico ?? durableStreams;
  const mainUrl = (settings.pico ?? settings.durableStreams)?.advertisedUrl;
  if (main !== null) self.print(`serving on http://${main} (advertised ${mainUrl ?? `http://${main}`})`);
  if (pico !== null && durableStreams !== null) {
    const url = settings.durableStreams?.advertisedUrl ?? `http://${durableStreams}`;
    self.print(`durable streams on http://${durableStreams} (advertised ${url})`);
  }
  if (admin !== null) self.print(`admin on http://${admin}`);
}

async function stop(node: RunningNode, signal: string, self: ServeProcess): Promise<number> {
  self.print("shutting down");
  await node.stop(signal);
  return 0;
}

/** Resolves at the first signal; from then on another one ends the process. */
function firstStopSignal(self: ServeProcess): Promise<string> {
  return new Promise((resolve) => {
    let firstAtMs: number | null = null;
    self.onStopSignal((signal) => {
      const nowMs = self.clock.monotonicMs();
      if (firstAtMs === null) {
        firstAtMs = nowMs;
        resolve(signal);
      } else if (nowMs - firstAtMs > SIGNAL_COPY_MS) {
        self.exitAtOnce(EXIT_CODE_INTERRUPTED);
      }
    });
  });
}
