import { mkdtemp, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk {
  readonly path: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Empty where the command succeeds, else its complaint. */
export async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
  const complaint = await new Response(child.stderr).text();
  return (await child.exited) === 0 ? "" : complaint.trim() || "failed";
}

/** A file system of its own with `sizeKib` of space; the reason, as text, where it cannot be had. */
export async function mountSmallDisk(sizeKib: number): Promise<SmallDisk | string> {
  if (process.platform !== "linux") return `no tmpfs on ${process.platform}`;
  if (process.getuid?.() !== 0) return "mounting a tmpfs needs root";
  const path = await mkdtemp(join(tmpdir(), "pico-disk-"));
  const complaint = await run("mount", "-t", "tmpfs", "-o", `size=${sizeKib}k`, "tmpfs", path);
  if (complaint !== "") {
    await rmdir(path);
    return `mount refused: ${complaint}`;
  }
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      const refusal = await run("umount", path);
      if (refusal !== "") throw new Error(`cannot unmount ${path}: ${refusal}`);
      await rmdir(path);
    },
  };
}
