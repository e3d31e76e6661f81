/**
 * The composition root: turns one settings object into a running node, and owns the order of its start
 * and of its stop.
 *
 * Start: admin listener (health answers from here on), locks and stores, metadata, stream listeners,
 * registration and recovery. Stop: not ready, drain, live reads end and listeners stop accepting,
 * everything is uploaded and the registration ended, admin listener; bounded by the stop time-out, and
 * then as after a crash.
 */
import { createAdminListener } from "../admin/admin-listener.ts";
import { PicoMount } from "../admin/pico-mount.ts";
import { sleep, systemClock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { assertLimitsAgree, FAILOVER_TIMEOUT_MS_DEFAULT, UPLOAD_SEGMENTS_DEFAULT } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { systemRandom } from "../lib/random.ts";
import type { Addresses } from "../metadata/command.ts";
import { createDurableStreamsListener } from "../protocol/durable-streams-listener.ts";
import type { HttpListener } from "../protocol/http-listener.ts";
import { makeOriginPolicy } from "../protocol/origin-policy.ts";
import { createPicoListener } from "../protocol/pico-listener.ts";
import type { ProtocolContext } from "../protocol/protocol-context.ts";
import { RequestBodies } from "../protocol/request-body.ts";
import { findShippedFiles } from "../storage/shipped-files.ts";
import { CountedStreams } from "../streams/counted-streams.ts";
import { createAdminSource } from "./admin-source.ts";
import { NodeCore, type NodeCoreSettings } from "./node-core.ts";
import { type NodeParts, openParts } from "./node-parts.ts";
import { NodeWatch } from "./node-watch.ts";
import { ProblemLog } from "./problem-log.ts";
import { adminUrlsOf, type ListenAddress, type Settings, type StreamListenerSettings } from "./settings.ts";

export interface RunningNode {
  /** `host:port` as bound (IPv6 in brackets); null where there is no such listener. */
  readonly addresses: { readonly pico: string | null; readonly durableStreams: string | null; readonly admin: string | null };
  /** Stops gracefully, within `stopTimeoutSeconds`; `reason` is for the log. */
  stop(reason: string): Promise<void>;
  /** Resolves when the node has stopped by itself, with what made it stop. */
  readonly stopped: Promise<{ readonly error: unknown }>;
}

/**
 * Resolves when the node serves, which may take as long as its disk is full or its database away. When
 * `stopping` aborts before it is ready, the start is cut short as by a crash, and rejects.
 */
export type StartNode = (settings: Settings, log: Logger, stopping: AbortSignal) => Promise<RunningNode>;

export const startNode: StartNode = async (settings, log, stopping) => {
  assertLimitsAgree();
  const node = new Node(settings, log);
  const cut = () => void node.cutStart();
  stopping.addEventListener("abort", cut);
  try {
    await node.start();
  } catch (error) {
    await node.cut();
    throw error;
  } finally {
    stopping.removeEventListener("abort", cut);
  }
  return node;
};

class Node implements RunningNode {
  readonly stopped: Promise<{ readonly error: unknown }>;
  readonly #settings: Settings;
  readonly #log: Logger;
  readonly #watch: NodeWatch;
  readonly #stopping = new AbortController();
  readonly #resolveStopped: (end: { readonly error: unknown }) => void;
  #bound: { pico: string | null; durableStreams: string | null; admin: string | null } = { pico: null, durableStreams: null, admin: null };
  #admin: HttpListener | null = null;
  /** The admin listener's streams; null without that listener. */
  #picoMount: PicoMount | null = null;
  readonly #listeners: HttpListener[] = [];
  #parts: NodeParts | null = null;
  #core: NodeCore | null = null;
  #isServing = false;
  #isStopping = false;

  constructor(settings: Settings, log: Logger) {
    this.#settings = settings;
    const problems = new ProblemLog(log, systemClock);
    this.#log = problems;
    this.#watch = new NodeWatch({
      clock: systemClock,
      log: problems,
      core: () => this.#core,
      storeFigures: () => this.#parts?.storeFigures ?? null,
      isReady: () => this.#isServing && this.#core?.isReady === true,
    });
    const { promise, resolve } = Promise.withResolvers<{ readonly error: unknown }>();
    this.stopped = promise;
    this.#resolveStopped = resolve;
  }

  get addresses(): RunningNode["addresses"] {
    return {
      pico: withoutScheme(this.#bound.pico),
      durableStreams: withoutScheme(this.#bound.durableStreams),
      admin: withoutScheme(this.#bound.admin),
    };
  }

  async start(): Promise<void> {
    const settings = this.#settings;
    this.#startAdmin();
    this.#parts = await openParts(settings, this.#log, this.#stopping.signal);
    this.#assertNotStopping();
    const { sql, store, wal, lifeLock } = this.#parts;
    const core = await NodeCore.open({
      clock: systemClock,
      random: systemRandom,
      log: this.#log,
      sql,
      store,
      wal,
      settings: coreSettings(settings),
      lifeLock,
    });
    this.#core = core;
    this.#assertNotStopping();
    void core.failed.then((error) => this.#endByItself(error));
    const addresses = this.#startListeners(core);
    this.#isServing = true;
    await core.start(addresses);
    this.#log.info("the node serves", {
      nodeId: settings.nodeId,
      nodeEpoch: core.metadata.registration?.nodeEpoch,
      streams: core.metadata.view.streamCount,
    });
  }

  #assertNotStopping(): void {
    if (this.#isStopping) throw new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
  }

  #startAdmin(): void {
    const { admin, adminOrigins } = this.#settings;
    if (admin === null) return;
    this.#watch.start();
    const source = createAdminSource({
      settings: this.#settings,
      core: () => this.#core,
      isServing: () => this.#isServing,
      watch: this.#watch,
      advertisedAddress: () => this.#advertised("pico") ?? this.#advertised("durableStreams") ?? "",
      durableStreamsUrl: () => this.#advertised("durableStreams"),
    });
    const { allowedOrigins, allowedHosts } = adminOrigins;
    const advertisedUrls = adminUrlsOf(this.#settings);
    const policy = makeOriginPolicy({ originFlag: "--admin-cors-origin", corsOrigins: allowedOrigins, allowedHosts, advertisedUrls });
    const pico = new PicoMount({ policy, log: this.#log, clock: systemClock, observer: this.#watch.traffic.pico });
    this.#picoMount = pico;
    this.#admin = createAdminListener({ source, policy, log: this.#log, clock: systemClock, files: findShippedFiles(), pico });
    this.#bound.admin = this.#admin.listen(bindOptions(admin.listen)).address;
  }

  /** Binds the stream listeners; until the node has started they answer `unavailable`. */
  #startListeners(core: NodeCore): Addresses {
    const { pico, durableStreams, streamOrigins, longPollSeconds, sseSeconds, pageBytesDefault, requestBytesMax } = this.#settings;
    const bound = this.#bound;
    const context: ProtocolContext = {
      service: new CountedStreams(core.streams, systemClock, this.#watch.streams),
      router: core.router,
      clock: systemClock,
      random: systemRandom,
      log: this.#log,
      settings: {
        longPollSeconds,
        sseSeconds,
        pageBytes: pageBytesDefault,
        corsOrigins: streamOrigins.allowedOrigins,
        allowedHosts: streamOrigins.allowedHosts,
        advertisedUrls: { pico: pico?.advertisedUrl ?? null, durableStreams: durableStreams?.advertisedUrl ?? null, admin: bound.admin },
      },
      bodies: new RequestBodies(requestBytesMax),
      onInvariantBroken: (error) => core.fail(error),
      observers: this.#watch.traffic,
      stopping: this.#stopping.signal,
    };
    this.#picoMount?.open(context);
    const bind = (settings: StreamListenerSettings | null, listener: () => HttpListener): string | null => {
      if (settings === null) return null;
      const created = listener();
      const { address } = created.listen(bindOptions(settings.listen));
      this.#listeners.push(created);
      return address;
    };
    bound.pico = bind(pico, () => createPicoListener(context));
    bound.durableStreams = bind(durableStreams, () => createDurableStreamsListener(context));
    return { pico: this.#advertised("pico"), durableStreams: this.#advertised("durableStreams"), admin: bound.admin };
  }

  #advertised(kind: "pico" | "durableStreams"): string | null {
    return this.#settings[kind]?.advertisedUrl ?? this.#bound[kind];
  }

  async stop(reason: string): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    const { shutdownDrainSeconds, stopTimeoutSeconds } = this.#settings;
    this.#log.info("the node stops", { reason });
    this.#isServing = false;
    await sleep(systemClock, shutdownDrainSeconds * 1000);
    const timeUp = new AbortController();
    const late = sleep(systemClock, stopTimeoutSeconds * 1000, timeUp.signal).then(() => "late" as const);
    let end: "late" | "stopped";
    try {
      end = await Promise.race([this.#stopGracefully(stopTimeoutSeconds * 1000).then(() => "stopped" as const), late]);
    } finally {
      timeUp.abort();
      // Also behind a stop that failed: nothing may go on, and the locks are let go of.
      await this.cut();
    }
    if (end === "late") {
      throw new PicoError(
        "unavailable",
        `the graceful stop took longer than ${stopTimeoutSeconds} s and was ended as by a crash; the next start recovers`,
      );
    }
  }

  async #stopGracefully(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    // The admin listener tells of the stop to its end; only what it asked of the streams is waited for.
    this.#picoMount?.close();
    const deadlineMs = timeoutMs / 2;
    await Promise.all([...this.#listeners.map((listener) => listener.stop(deadlineMs)), this.#admin?.whenIdle(deadlineMs)]);
    await this.#core?.stop();
  }

  /** A node that is ready has clients already: its start is as good as over, and it is stopped gracefully behind it. */
  async cutStart(): Promise<void> {
    if (this.#core?.isReady !== true) await this.cut();
  }

  /** Ends everything that still runs, at once. */
  async cut(): Promise<void> {
    this.#isServing = false;
    this.#isStopping = true;
    this.#stopping.abort();
    this.#watch.stop();
    if (this.#core !== null && this.#core.phase !== "stopped") this.#core.abandon();
    await Promise.all([...this.#listeners, ...(this.#admin === null ? [] : [this.#admin])].map((listener) => listener.stop(0)));
    await this.#parts?.close().catch((error) => this.#log.warn("a store did not close cleanly", { error }));
    this.#parts = null;
  }

  #endByItself(error: unknown): void {
    if (this.#isStopping) return;
    this.#log.error("the node can no longer serve and stops", { error });
    void this.cut().finally(() => this.#resolveStopped({ error }));
  }
}

function coreSettings(settings: Settings): NodeCoreSettings {
  const { parameters } = settings.wal;
  return {
    clusterId: settings.clusterId,
    nodeId: settings.nodeId,
    nodeEpoch: settings.nodeEpoch,
    slots: 1,
    failoverTimeoutMs: FAILOVER_TIMEOUT_MS_DEFAULT,
    backlogBytesMax: parameters.backlogBytesMax,
    segmentBytes: parameters.batchBytesMax,
    lingerMs: parameters.lingerMs,
    uploadBytes: settings.uploadBytes,
    uploadSegments: settings.wal.kind === "local" ? 0 : UPLOAD_SEGMENTS_DEFAULT,
    uploadIntervalMs: settings.uploadIntervalMs ?? 0,
    logCacheBytes: settings.logCacheBytes,
    blockCacheBytes: settings.blockCacheBytes,
    isMirrored: settings.isMirrored,
    scrubIntervalMs: settings.scrubIntervalSeconds * 1000,
  };
}

function bindOptions({ host, port }: ListenAddress): { hostname: string; port: number } {
  return { hostname: host, port };
}

function withoutScheme(address: string | null): string | null {
  return address === null ? null : address.replace(/^https?:\/\//, "");
}
