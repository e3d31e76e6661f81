import { join } from "node:path";

export interface LockHolder {
  readonly pid: number;
  readonly pause: () => void;
  readonly kill: () => Promise<void>;
}

/** Starts another process that holds the lock at `path`; resolves when it does. */
export async function startLockHolder(path: string): Promise<LockHolder> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "process-lock-holder.ts"), path], { stdout: "pipe", stderr: "inherit" });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  if (!new TextDecoder().decode(value).startsWith("holds")) throw new Error("the other process did not get the lock");
  return {
    pid: child.pid,
    pause: () => child.kill("SIGSTOP"),
    kill: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
