/** The drives of a MinIO, which fail and come back: a file in the place of a drive's folder, so that no path below it exists. */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import type { MinioServer } from "../../scripts/minio.ts";

export class Drives {
  readonly #paths: readonly string[];
  readonly #away = new Set<string>();

  constructor({ drivePaths }: MinioServer) {
    this.#paths = drivePaths;
  }

  /** From here on these fail, and the others work. */
  take(...indexes: readonly number[]): void {
    this.giveBack();
    for (const index of indexes) {
      const path = this.#paths[index];
      if (path === undefined) throw new Error(`there is no drive ${index}`);
      renameSync(path, `${path}-away`);
      writeFileSync(path, "");
      this.#away.add(path);
    }
  }

  /** All work again, those that were away with what they had then. */
  giveBack(): void {
    for (const path of this.#away) {
      rmSync(path);
      renameSync(`${path}-away`, path);
    }
    this.#away.clear();
  }
}
