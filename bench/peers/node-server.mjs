/**
 * Starts the npm peer with its file storage, which syncs each append before it answers.
 *
 *   node node-server.mjs PACKAGE_FOLDER DATA_FOLDER PORT
 */
import { createRequire } from "node:module";
import { join } from "node:path";

const [packageFolder, dataDir, port] = process.argv.slice(2);
const { DurableStreamTestServer } = createRequire(join(packageFolder, "package.json"))(packageFolder);
const server = new DurableStreamTestServer({ host: "127.0.0.1", port: Number(port), dataDir });
await server.start();

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, () => {
    server.stop().finally(() => process.exit(0));
  });
}
