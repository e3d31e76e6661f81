/** The walk of the page on MinIO, run word for word on free ports. */
import { expect, test } from "bun:test";
import { chmodSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { freePort } from "../../scripts/free-port.ts";
import { isMinioThere, MINIO_MISSING, MINIO_PATH } from "../../scripts/minio.ts";
import { freePorts } from "../cluster/node-process.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";

const root = dirname(dirname(import.meta.dir));
const page = readFileSync(join(root, "docs/minio.md"), "utf8");
const OUTPUT_MARK = /^#> ?/;

if (!isMinioThere() && process.env.CI === undefined) console.log(`skipped: ${MINIO_MISSING}`);

test.skipIf(!isMinioThere() && process.env.CI === undefined)(
  "the walk without Docker prints what the page says",
  async () => {
    await using folder = await makeTemporaryFolder();
    const walk =
      [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text).find((text) => text.includes("minio server")) ?? "";
    const { pico, durableStreams, admin } = await freePorts();
    const minio = await freePort();
    const program = join(folder.path, "pico");
    writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${join(root, "src/cli/main.ts")}" "$@"\n`);
    chmodSync(program, 0o755);
    symlinkSync(MINIO_PATH, join(folder.path, "minio"));
    const words = walk.replaceAll("127.0.0.1:9000", `127.0.0.1:${minio}`);
    // Jobs are named by their numbers, as in a terminal; what is left running at the end of the walk is ended.
    const shell = Bun.spawn(["bash", "-c", `set -m\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n${words}`], {
      cwd: folder.path,
      env: {
        PATH: `${folder.path}:${process.env.PATH ?? ""}`,
        HOME: folder.path,
        AWS_EC2_METADATA_DISABLED: "true",
        PICO_ENDPOINT: `http://127.0.0.1:${pico}`,
        PICO_LISTEN: `127.0.0.1:${pico}`,
        PICO_DS_LISTEN: `127.0.0.1:${durableStreams}`,
        PICO_ADMIN_LISTEN: `127.0.0.1:${admin}`,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [output, acknowledgements] = await Promise.all([shell.stdout.text(), shell.stderr.text()]);
    const expected = walk
      .split("\n")
      .filter((line) => OUTPUT_MARK.test(line))
      .map((line) => line.replace(OUTPUT_MARK, ""));
    expect(expected).toHaveLength(4);
    for (const line of expected) expect(`${output}\n${acknowledgements}`.split("\n")).toContain(line);
  },
  120_000,
);
