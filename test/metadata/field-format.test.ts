import { expect, test } from "bun:test";
import { ByteReader, ByteWriter } from "../../src/lib/bytes.ts";
import type { Outcome, RefusalCode, WalLocation } from "../../src/metadata/command.ts";
import { readOutcome, readWalLocation, writeOutcome, writeWalLocation } from "../../src/metadata/field-format.ts";

/** The number that each has for ever. */
const REFUSALS: Readonly<Record<RefusalCode, string>> = {
  proposer_dead: "01",
  epoch_conflict: "02",
  unknown_registration: "03",
  already_fenced: "04",
  not_fenced: "05",
  already_ended: "06",
  wal_position: "07",
  name_taken: "08",
  id_taken: "09",
  unknown_stream: "0a",
  not_owner: "0b",
  owned: "0c",
  owner_in_recovery: "0d",
  not_due: "0e",
  expired: "0f",
  transfer_pending: "10",
  no_transfer: "11",
  unknown_node: "12",
  node_alive: "13",
  unknown_object: "14",
  object_state: "15",
  fork_source: "16",
  stale_version: "17",
  batch_order: "18",
};
const WAL_KINDS: Readonly<Record<WalLocation["kind"], string>> = { local: "01", object: "02", postgres: "03" };

function written(write: (writer: ByteWriter) => void): Uint8Array {
  const writer = new ByteWriter();
  write(writer);
  return writer.copy();
}

test("each refusal has its permanent number and comes back as it was", () => {
  for (const [code, number] of Object.entries(REFUSALS) as [RefusalCode, string][]) {
    const outcome: Outcome = { applied: false, code, facts: {} };
    const bytes = written((writer) => writeOutcome(writer, outcome));
    expect([code, bytes.toHex()]).toEqual([code, `${number}00`]);
    expect(readOutcome(new ByteReader(bytes))).toEqual(outcome);
  }
});

test("each kind of WAL has its permanent number and comes back as it was", () => {
  for (const [kind, number] of Object.entries(WAL_KINDS) as [WalLocation["kind"], string][]) {
    const wal: WalLocation = { kind, description: "" };
    const bytes = written((writer) => writeWalLocation(writer, wal));
    expect([kind, bytes.toHex()]).toEqual([kind, `${number}00`]);
    expect(readWalLocation(new ByteReader(bytes))).toEqual(wal);
  }
});
