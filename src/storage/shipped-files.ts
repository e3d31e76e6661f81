/**
 * Files that ship with the program: compiled in by `compile.sh` (`--asset`), else read from the folder of
 * the sources, so that both serve the same. Whatever lies below `public/` ships; nothing names it twice.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

export interface ShippedFile {
  /** With forward slashes, below `public/`, such as `docs/index.html`. */
  readonly path: string;
  /** The whole content. */
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
}

const FOLDER = "public";

/** The files below `public/`, by path; none where the program was built without them. */
export function findShippedFiles(): readonly ShippedFile[] {
  const embedded = Bun.embeddedFiles.filter((blob) => nameOf(blob).startsWith(`${FOLDER}/`));
  return embedded.length > 0 ? embedded.map(embeddedFile) : filesBelow(join(import.meta.dir, "../..", FOLDER));
}

function embeddedFile(blob: Blob): ShippedFile {
  return { path: nameOf(blob).slice(FOLDER.length + 1), bytes: () => blob.bytes() };
}

/** Embedded files have names, which the type does not say. */
function nameOf(blob: Blob): string {
  return "name" in blob && typeof blob.name === "string" ? blob.name.replaceAll("\\", "/") : "";
}

function filesBelow(folder: string): ShippedFile[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path: path.slice(folder.length + 1).replaceAll("\\", "/"), bytes: () => Bun.file(path).bytes() };
    });
}
