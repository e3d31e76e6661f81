/**
 * Files that ship with the program: compiled in by `compile.sh` (`--asset`), else read from the folder of
 * the sources, so that both serve the same. Whatever lies below `public/` ships; nothing names it twice. From
 * packages come the files named here, with their licences; `scripts/stage-packages.ts` lays them out for the build.
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

/** Where the build lays out what comes from packages, below `.cache`. */
export const STAGED_FOLDER = "packages";

export interface PackageFile {
  /** Below `node_modules`. */
  readonly source: string;
  /** Where it is served. */
  readonly path: string;
}

const SWAGGER_FILES = ["swagger-ui-bundle.js", "swagger-ui.css", "swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE"] as const;

export const PACKAGE_FILES: readonly PackageFile[] = [
  ...SWAGGER_FILES.map((name) => ({ source: `swagger-ui-dist/${name}`, path: `docs/${name}` })),
  { source: "uplot/dist/uPlot.iife.min.js", path: "uplot/uPlot.iife.min.js" },
  { source: "uplot/dist/uPlot.min.css", path: "uplot/uPlot.min.css" },
  { source: "uplot/LICENSE", path: "uplot/LICENSE" },
];

/** The files below `public/`, and those of packages; none where the program was built without them. */
export function findShippedFiles(): readonly ShippedFile[] {
  const embedded = Bun.embeddedFiles.flatMap((blob) => {
    const path = servedPath(nameOf(blob));
    return path === null ? [] : [{ path, bytes: () => blob.bytes() }];
  });
  if (embedded.length > 0) return embedded;
  const root = join(import.meta.dir, "../..");
  const ofPackages = PACKAGE_FILES.map(({ source, path }) => ({ path, place: join(root, "node_modules", source) }));
  return [
    ...filesBelow(join(root, FOLDER)),
    ...ofPackages.filter(({ place }) => existsSync(place)).map(({ path, place }) => fileAt(path, place)),
  ];
}

/** Null for what is embedded for another purpose. */
function servedPath(name: string): string | null {
  const folder = [FOLDER, STAGED_FOLDER].find((candidate) => name.startsWith(`${candidate}/`));
  return folder === undefined ? null : name.slice(folder.length + 1);
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
