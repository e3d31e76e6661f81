/**
 * The lock of a node id, beside the SQLite file that its processes share: while it is held no other process of
 * this id lives on the host, so a start that takes it knows its predecessor dead.
 *
 * Where a WAL can be taken over, a start goes on without it, since a process that is only paused holds it as
 * well, and is fenced instead. The lock is then taken as soon as it is free: it must be held by whoever lives.
 */
import type { Clock, Timer } from "../lib/clock.ts";
import { isPicoError } from "../lib/errors.ts";
import { NODE_ID_LOCK_RETRY_MS } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { LocalDirectory } from "../storage/local-directory.ts";

export interface NodeIdLockOptions {
  readonly directory: LocalDirectory;
  readonly clock: Clock;
  readonly log: Logger;
  /** False: a lock that another process holds refuses the start. */
  readonly canGoWithout: boolean;
}

export class NodeIdLock {
  readonly #options: NodeIdLockOptions;
  #isHeld = false;
  #isClosed = false;
  #retry: Timer | null = null;
  #attempt: Promise<void> = Promise.resolve();

  private constructor(options: NodeIdLockOptions) {
    this.#options = options;
  }

  /** Throws `locked` where another process holds it and the start cannot go without; and as the directory does. */
  static async take(options: NodeIdLockOptions): Promise<NodeIdLock> {
    const lock = new NodeIdLock(options);
    try {
      await options.directory.lock();
      lock.#isHeld = true;
    } catch (error) {
      if (!options.canGoWithout || !isPicoError(error, "locked")) throw error;
      lock.#retryLater();
    }
    return lock;
  }

  /** No other process of the node id lives on this host. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry?.cancel();
    await this.#attempt;
    if (this.#isHeld) await this.#options.directory.unlock();
    this.#isHeld = false;
  }

  #retryLater(): void {
    if (this.#isClosed) return;
    this.#retry = this.#options.clock.schedule(NODE_ID_LOCK_RETRY_MS, () => {
      this.#attempt = this.#tryAgain();
    });
  }

  async #tryAgain(): Promise<void> {
    const { directory, log } = this.#options;
    try {
      await directory.lock();
      this.#isHeld = true;
      log.info("the lock of this node id was free and is taken", { directory: directory.path });
    } catch (error) {
      if (!isPicoError(error, "locked")) log.warn("the lock of this node id cannot be taken", { error });
      this.#retryLater();
    }
  }
}
