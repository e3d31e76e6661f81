/**
 * The registrations of a restored log. Those whose WAL is in the store and which the log does not know are taken back;
 * then the restore registers itself above every epoch that was ever seen, and nobody who lived on the lost database
 * counts as alive any more.
 */
import { PicoError } from "../lib/errors.ts";
import { FAILOVER_TIMEOUT_MS_DEFAULT, RESTORE_OBJECT_ID_GAP, RESTORE_STREAM_ID_GAP } from "../lib/limits.ts";
import { randomHex } from "../lib/random.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { Command, Outcome } from "../metadata/command.ts";
import { COMMAND_VERSION, encodeBatch, encodeCommand } from "../metadata/command-format.ts";
import type { RegistrationEntry } from "../metadata/entries.ts";
import type { MetadataLog } from "../metadata/metadata-log.ts";
import type { CommandOf } from "../metadata/outcome.ts";
import type { RestoreOptions } from "./restore-options.ts";
import type { RestoredLog } from "./restored-log.ts";

/** Registers those whose WAL is there and whose register command is not. Throws `corrupt` where the log has a later life instead. */
export async function takeBack(options: RestoreOptions, { sql, metadata }: RestoredLog): Promise<readonly RegistrationName[]> {
  const { wal, random } = options;
  const found = [...(await wal.registrations())];
  const unknown = found.filter((name) => metadata.view.registration(name) === null);
  unknown.sort((left, right) => left.nodeId - right.nodeId || left.nodeEpoch - right.nodeEpoch);
  for (const name of unknown) {
    const replaces = metadata.view.node(name.nodeId)?.lastEpoch ?? null;
    if (replaces !== null && name.nodeEpoch <= replaces) {
      throw new PicoError(
        "corrupt",
        `the WAL of ${formatRegistration(name)} is in ${wal.description}, and the log knows a later life but not this one`,
        {},
      );
    }
    const payload = encodeBatch([encodeCommand(registerCommand(options, metadata, name, replaces))]);
    const fences = replaces === null ? [] : [{ victim: { nodeId: name.nodeId, nodeEpoch: replaces }, counter: null }];
    await sql.insertBatch({ rowId: randomHex(random, 16), proposer: name, batch: 0, payload, fences });
    await metadata.catchUp();
  }
  return unknown;
}

/** What the restored log gets of the restore itself. */
export interface RestoreRegistration {
  /** Registrations of whose WAL nothing will ever come. */
  readonly lost: readonly RegistrationEntry[];
  /** The highest ids that were seen anywhere. */
  readonly streamIdMax: number;
  readonly objectIdMax: number;
}

/** Registers the restore, fences whoever is alive, ends the lost, raises the ids, and ends the restore's own registration, which it returns. */
export async function registerRestore(
  options: RestoreOptions,
  { metadata }: RestoredLog,
  seen: RestoreRegistration,
): Promise<RegistrationName> {
  const { nodeId, clock } = options;
  const replaces = metadata.view.node(nodeId)?.lastEpoch ?? null;
  const self = { nodeId, nodeEpoch: Math.max(clock.nowMs(), (replaces ?? -1) + 1) };
  assertApplied("register", await metadata.register(registerCommand(options, metadata, self, replaces), null));
  for (const { name, state } of [...metadata.view.registrations()]) {
    if (state !== "live" || sameRegistration(name, self)) continue;
    // Its database is gone: whoever still runs on it is no part of this cluster any more.
    assertApplied("fence", await metadata.propose({ type: "fence", victim: name }, [{ victim: name, counter: null }]).outcome);
  }
  for (const { name, committedNumber } of seen.lost) {
    await propose(metadata, { type: "end", victim: name, lastNumber: committedNumber, heir: null });
  }
  const { nextStreamId, nextObjectId } = metadata.nextIds;
  await propose(metadata, {
    type: "raise_ids",
    nextStreamId: Math.max(nextStreamId, seen.streamIdMax + 1) + RESTORE_STREAM_ID_GAP,
    nextObjectId: Math.max(nextObjectId, seen.objectIdMax + 1) + RESTORE_OBJECT_ID_GAP,
  });
  assertApplied("end", await metadata.end(0));
  return self;
}

function registerCommand(
  { wal }: RestoreOptions,
  { view }: MetadataLog,
  node: RegistrationName,
  replaces: number | null,
): CommandOf<"register"> {
  return {
    type: "register",
    node,
    addresses: { pico: null, durableStreams: null, admin: null },
    wal: { kind: wal.kind, description: wal.description },
    slots: view.node(node.nodeId)?.slots ?? 1,
    failoverTimeoutMs: FAILOVER_TIMEOUT_MS_DEFAULT,
    commandVersion: COMMAND_VERSION,
    replaces,
  };
}

async function propose(metadata: MetadataLog, command: Command): Promise<void> {
  assertApplied(command.type, await metadata.propose(command).outcome);
}

function assertApplied(what: string, outcome: Outcome): void {
  if (!outcome.applied) throw new PicoError("internal", `the ${what} of the restore was refused (${outcome.code})`);
}
