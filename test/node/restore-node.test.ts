import { expect, test } from "bun:test";
import { systemRandom } from "../../src/lib/random.ts";
import { restoreNode } from "../../src/node/restore-node.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { HastyClock } from "../support/hasty-clock.ts";
import { useTestCredentials } from "../support/minio.ts";
import { silentLog } from "../support/silent-log.ts";

test("a restore from an endpoint where nobody answers ends, and names it", async () => {
  const restore = useTestCredentials();
  await using temporary = await makeTemporaryFolder();
  const folder = temporary.path;
  // Nobody listens on the first port.
  const place = {
    bucket: "b2b",
    prefix: "",
    region: null,
    endpoint: "http://127.0.0.1:1",
    isPathStyle: null,
    isExpress: false,
    encryption: null,
  };
  const parameters = { lingerMs: 0, batchBytesMax: 1, inFlightMax: 1, backlogBytesMax: 1 };
  const places = {
    clusterId: "c",
    dataDirectory: folder,
    metadata: { kind: "sqlite-file", path: `${folder}/meta.db` },
    storage: { kind: "s3", id: -2, place },
    wal: { kind: "s3", id: -2, place, parameters },
  } as const;
  const clock = new HastyClock({ haste: 600 });
  const options = { places, nodeId: 1, isForced: false, clock, random: systemRandom, log: silentLog, onProgress: () => undefined };
  const error = await restoreNode(options).catch((thrown: unknown) => thrown);
  expect(String(error)).toContain("s3://b2b at http://127.0.0.1:1 cannot be used");
  restore();
}, 60_000);
