/** An admin listener whose process hangs as soon as it is told anything: a program for `readiness.test.ts`. */
import { openAdmin } from "../support/admin-listener.ts";

const { address } = openAdmin();
console.log(address);
for await (const _ of Bun.stdin.stream()) {
  for (;;);
}
