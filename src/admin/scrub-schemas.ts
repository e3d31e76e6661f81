/** What `/admin/scrub` takes and answers, as schemas. */
import { Type as t } from "@sinclair/typebox";
import { SCRUB_AGE_SECONDS_DEFAULT, SCRUB_AGE_SECONDS_MAX, SCRUB_AGE_SECONDS_MIN } from "../lib/limits.ts";
import { Count, FirstOf, Millis } from "./admin-schemas.ts";

export const ScrubOrder = t.Object(
  {
    verify: t.Optional(t.Boolean({ description: "Read every live data object whole and check its checksums", default: false })),
    deleteOrphans: t.Optional(t.Boolean({ description: "Delete orphans that are old enough", default: false })),
    minAgeSeconds: t.Optional(
      t.Integer({
        minimum: SCRUB_AGE_SECONDS_MIN,
        maximum: SCRUB_AGE_SECONDS_MAX,
        default: SCRUB_AGE_SECONDS_DEFAULT,
        description: "Only orphans that the store took longer ago are deleted, in seconds",
      }),
    ),
  },
  { $id: "ScrubOrder", additionalProperties: false },
);

const Key = t.String({ description: "In the object store, without the prefix that the storage's address has" });
const StoredKey = {
  key: Key,
  bytes: Count("Its size"),
  modifiedAtMs: Millis("When the store took it, by its own clock"),
};

const ScrubRunAnswer = t.Object({
  by: t.Union([t.Literal("operator"), t.Literal("schedule")], { description: "Who began it" }),
  verify: t.Boolean({ description: "As asked for" }),
  deleteOrphans: t.Boolean({ description: "As asked for" }),
  minAgeSeconds: Count("As asked for"),
  startedAtMs: Millis("Begin"),
  endedAtMs: t.Union([Count("End, in ms since 1970"), t.Null()], { description: "Null while it runs" }),
  outcome: t.Union([t.Literal("running"), t.Literal("sound"), t.Literal("damage"), t.Literal("failed")], {
    description:
      "`sound`: every live data object is there, and whole as far as it was looked at. `damage`: some are not. `failed`: it could not be finished, and found no damage until then",
  }),
  error: t.Union([t.String(), t.Null()], { description: "Why it could not be finished" }),
  progress: t.Object({
    phase: t.Union([t.Literal("list"), t.Literal("confirm"), t.Literal("verify"), t.Literal("delete"), t.Literal("done")], {
      description: "`list` (keys), `confirm` (objects that the list did not have), `verify` (bytes), `delete` (keys), `done`",
    }),
    done: Count("In units of the phase"),
    total: t.Union([Count("In units of the phase"), t.Null()], { description: "Null where it is not known" }),
  }),
  keys: Count("Listed below the cluster's prefix"),
  bytes: Count("Their size"),
  liveObjects: Count("Live data objects when it began"),
  verified: t.Object({ count: Count("Data objects read whole without a fault"), bytes: Count("Their size") }),
  missing: FirstOf(t.Object({ key: Key, bytes: Count("As committed") }), "Live data objects that the store does not have"),
  wrongSize: FirstOf(
    t.Object({ key: Key, expectedBytes: Count("As committed"), foundBytes: Count("In the store") }),
    "Live data objects of another size than was committed",
  ),
  damaged: FirstOf(
    t.Object({ key: Key, what: t.String({ description: "Which bytes, and what is wrong with them" }) }),
    "Live data objects with a checksum that does not match; looked for with `verify` only",
  ),
  orphans: FirstOf(
    t.Object({
      ...StoredKey,
      reason: t.Union([t.Literal("removed_object"), t.Literal("ended_wal")], {
        description: "`removed_object`: written after its removal. `ended_wal`: a segment of a registration that is ended",
      }),
    }),
    "Keys that are certainly nobody's",
  ),
  orphanBytes: Count("Size of all of them"),
  unexplained: FirstOf(
    t.Object({
      ...StoredKey,
      reason: t.Union([t.Literal("unknown_object"), t.Literal("unknown_registration"), t.Literal("unknown_kind")], {
        description:
          "`unknown_object`, `unknown_registration`: the database never knew it, and so may be older than the store, or another one. `unknown_kind`: no key that this version makes",
      }),
    }),
    "Keys that the metadata cannot explain. They are never deleted",
  ),
  deleted: t.Object({ count: Count("Orphans that the store confirmed to have deleted"), bytes: Count("Their size") }),
  tooYoung: Count("Orphans that stay because of `minAgeSeconds`"),
  refused: FirstOf(
    t.Object({ key: Key, code: t.String({ description: "The store's own word" }), message: t.String() }),
    "Orphans that the store did not delete",
  ),
  nothingDeletedBecause: t.Union([t.Literal("damage"), t.Literal("unexplained_keys"), t.Literal("removal_held"), t.Null()], {
    description:
      "Why orphans stay although they were to be deleted. `damage`: what is left may be needed to mend it. `unexplained_keys`: the database may be older than the store. `removal_held`: an operator holds removal, or the mark that goes before a delete could not be made. Null: nothing kept them",
  }),
});

export const ScrubAnswer = t.Object(
  {
    running: t.Boolean({ description: "One is under way on this node" }),
    intervalSeconds: Count("Between two by themselves, on the node that runs maintenance (`--scrub-interval-sec`); 0: none"),
    run: t.Union([ScrubRunAnswer, t.Null()], { description: "The one under way, else the last one of this process; null: none yet" }),
  },
  { $id: "Scrub" },
);

export type ScrubRunTold = typeof ScrubRunAnswer.static;
