import { expect, test } from "bun:test";
import { describeReport } from "../../src/cli/restore.ts";
import type { RestoreReport } from "../../src/node/restore.ts";

const REPORT: RestoreReport = {
  clusterIdentity: "ab".repeat(16),
  snapshotIndex: 4096,
  mirroredIndex: 5214,
  mirroredAtMs: Date.UTC(2026, 10, 30, 15, 25, 41, 379),
  stateHash: "55d060c67e42a383",
  streams: 120,
  takenBack: [],
  walSegments: 12,
  walBytes: 1_468_006,
  lostStreams: [],
  lostStreamCount: 0,
  objects: 37,
  orphanCount: 0,
  orphanBytes: 0,
  problems: [],
};

test("a report says of missing streams what can be known, and that their names cannot", async () => {
  const lostStreams = [{ streamId: 1_048_712, records: 3 }];
  const lines = describeReport({ ...REPORT, lostStreams, lostStreamCount: 1 });
  expect(lines.join("\n")).toContain("their names cannot be told");
  // The page shows it as it is printed.
  expect(await Bun.file("docs/operations.md").text()).toContain(`\n\`\`\`\n${lines.join("\n")}\n\`\`\`\n`);
});

test("a report that misses nothing says what it cannot see, and one that misses many tells how many more", () => {
  expect(describeReport(REPORT).join("\n")).toContain("had no record left no trace");
  const lines = describeReport({ ...REPORT, lostStreams: [{ streamId: 7, records: 1 }], lostStreamCount: 3 });
  expect(lines).toContain("  stream id 7: 1 record");
  expect(lines).toContain("  and 2 more");
});
