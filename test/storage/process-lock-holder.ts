/** Run as a process of its own: takes the lock named by its argument, says so, and stays until it is killed. */
import { ProcessLock } from "../../src/storage/process-lock.ts";

const lock = ProcessLock.acquire(process.argv[2] ?? "");
console.log(`holds ${lock.path}`);
setInterval(() => undefined, 60_000);
