/** Keeps a file from being deleted, also by root: a file that is mounted upon is busy. */
import { run } from "./small-disk.ts";

export interface PinnedFile {
  release(): Promise<void>;
}

/** The reason, as text, where it cannot be done here. */
export async function pinFile(path: string): Promise<PinnedFile | string> {
  if (process.platform !== "linux") return `no bind mounts on ${process.platform}`;
  if (process.getuid?.() !== 0) return "a bind mount needs root";
  const complaint = await run("mount", "--bind", path, path);
  if (complaint !== "") return `mount refused: ${complaint}`;
  let isPinned = true;
  return {
    release: async () => {
      if (!isPinned) return;
      isPinned = false;
      const refusal = await run("umount", path);
      if (refusal !== "") throw new Error(`cannot unmount ${path}: ${refusal}`);
    },
  };
}
