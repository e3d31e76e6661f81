/**
 * The lock of a node id, beside the SQLite file that its processes share: while it is held no other process of
 * this id lives on the host, so a start that takes it knows its predecessor dead.
 *
 * Where a WAL can be taken over, a start goes on without it, since a process that is only paused holds it as
 * well, and is fenced instead. The lock is then taken as soon as it is free. Until then a third process may come
 * first: so a holder leaves its epoch in the locked folder, and the lock proves the death of such lives only.
 *
 * ```
 * <database>.nodes/<node id>/<epoch>.life    the life of that epoch held, or holds, the lock
 * ```
 */
import type { Clock, Timer } from "../lib/clock.ts";
import { isPicoError } from "../lib/errors.ts";
import { NODE_ID_LOCK_RETRY_MS } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { LocalDirectory } from "../storage/local-directory.ts";
import type { LifeLock } from "./life-lock.ts";

export interface NodeIdLockOptions {
  readonly directory: LocalDirectory;
  readonly clock: Clock;
  readonly log: Logger;
  /** False: a lock that another process holds refuses the start. */
  readonly canGoWithout: boolean;
}

const LIFE_SUFFIX = ".life";

export class NodeIdLock implements LifeLock {
  readonly #options: NodeIdLockOptions;
  #isHeld = false;
  /** Lives that held the lock before. */
  #lives: ReadonlySet<number> = new Set();
  /** This process's own. */
  #epoch: number | null = null;
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
      lock.#lives = await lock.#readLives();
    } catch (error) {
      if (!options.canGoWithout || !isPicoError(error, "locked")) throw error;
      lock.#retryLater();
    }
    return lock;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  provesDeathOf(nodeEpoch: number): boolean {
    return this.#isHeld && this.#lives.has(nodeEpoch);
  }

  async noteLife(nodeEpoch: number): Promise<void> {
    this.#epoch = nodeEpoch;
    if (this.#isHeld) await this.#writeLife(nodeEpoch);
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
      if (this.#epoch !== null) await this.#writeLife(this.#epoch);
      log.info("the lock of this node id was free and is taken", { directory: directory.path });
    } catch (error) {
      if (!isPicoError(error, "locked")) log.warn("the lock of this node id cannot be taken", { error });
      this.#retryLater();
    }
  }

  async #readLives(): Promise<ReadonlySet<number>> {
    const names = await this.#options.directory.list();
    return new Set(names.filter((name) => name.endsWith(LIFE_SUFFIX)).map((name) => Number(name.slice(0, -LIFE_SUFFIX.length))));
  }

  /** Without it the next start waits for a standstill, and nothing worse. */
  async #writeLife(nodeEpoch: number): Promise<void> {
    const { directory, log } = this.#options;
    try {
      const own = `${nodeEpoch}${LIFE_SUFFIX}`;
      const names = await directory.list();
      if (!names.includes(own)) await (await directory.create(own, 0)).close();
      for (const name of names) if (name !== own && name.endsWith(LIFE_SUFFIX)) await directory.remove(name);
    } catch (error) {
      log.warn("the folder of this node id's lock cannot be written", { directory: directory.path, error });
    }
  }
}
