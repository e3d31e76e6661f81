/** Lays out what ships of packages below `.cache/packages`, by where it is served: `compile.sh` embeds that folder. */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_FILES, STAGED_FOLDER } from "../src/storage/shipped-files.ts";

const root = join(import.meta.dir, "..");
const target = join(root, ".cache", STAGED_FOLDER);

rmSync(target, { recursive: true, force: true });
for (const { source, path } of PACKAGE_FILES) cpSync(join(root, "node_modules", source), join(target, path));
