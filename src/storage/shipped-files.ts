/**
 * Files that ship with the program: compiled in by `compile.sh` (`--asset`), else read from the folder of
 * the sources, so that both serve the same. Whatever lies below `public/` ships; nothing names it twice. From
 * packages come the files named here, which `compile.sh` names too.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

export interface ShippedFile {
  /** Where it is served, with forward slashes and without the first, such as `docs/index.html`. */
  readonly path: string;
  /** The whole content. */
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
}

const FOLDER = "public";

/** Of Swagger UI, with its licences; served below `docs/`. Embedded ones lose the folder that they come from. */
const PACKAGE_FOLDER = "node_modules/swagger-ui-dist";
const PACKAGE_FILES = ["swagger-ui-bundle.js", "swagger-ui.css", "swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE"] as const;

/** The files below `public/`, and those of packages; none where the program was built without them. */
export function findShippedFiles(): readonly ShippedFile[] {
  const embedded = Bun.embeddedFiles.flatMap((blob) => {
    const path = servedPath(nameOf(blob));
    return path === null ? [] : [{ path, bytes: () => blob.bytes() }];
  });
  if (embedded.length > 0) return embedded;
  const root = join(import.meta.dir, "../..");
  const folder = join(root, PACKAGE_FOLDER);
  const ofPackages = PACKAGE_FILES.filter((name) => existsSync(join(folder, name)));
  return [...filesBelow(join(root, FOLDER)), ...ofPackages.map((name) => fileAt(`docs/${name}`, join(folder, name)))];
}

/** Null for what is embedded for another purpose. */
function servedPath(name: string): string | null {
  if (name.startsWith(`${FOLDER}/`)) return name.slice(FOLDER.length + 1);
  return PACKAGE_FILES.some((file) => file === name) ? `docs/${name}` : null;
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
      return fileAt(path.slice(folder.length + 1).replaceAll("\\", "/"), path);
    });
}

function fileAt(path: string, place: string): ShippedFile {
  return { path, bytes: () => Bun.file(place).bytes() };
}
