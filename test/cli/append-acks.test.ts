import { expect, test } from "bun:test";
import { AppendAcks } from "../../src/cli/append-acks.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { FakeProcess } from "./fake-process.ts";

class TimedProcess extends FakeProcess {
  override readonly clock = new ManualClock();
}

test("--batch 1 acknowledges each record, a larger one each request; what is not known is -", () => {
  const each = new FakeProcess();
  const single = new AppendAcks(each, 1);
  single.wasTaken({ count: 3, start: 7, next: "10" });
  single.wasTaken({ count: 2, start: null, next: null });
  single.finish();
  expect(each.errorText).toBe("start=7 next=8\nstart=8 next=9\nstart=9 next=10\nstart=- next=-\nstart=- next=-\n");
  const many = new FakeProcess();
  const batched = new AppendAcks(many, 1000);
  batched.wasTaken({ count: 3, start: 7, next: "10" });
  batched.wasTaken({ count: 1, start: null, next: "00011" });
  expect(many.errorText).toBe("start=7 next=10\nstart=- next=00011\n");
  expect([batched.count, batched.next]).toEqual([4, "00011"]);
});

test("on a terminal that watches a pipe there is one line of progress, and one acknowledgement at the end", async () => {
  const self = new TimedProcess({ isErrorsTerminal: true, input: "x".repeat(4000) });
  const acks = new AppendAcks(self, 1);
  acks.wasRead(1000);
  acks.wasTaken({ count: 10, start: 0, next: "10" });
  expect(self.errorText).toBe("\r\u001b[K10 records durable, 1000 bytes read (25 %)");
  // Too soon to be shown.
  acks.wasTaken({ count: 10, start: 10, next: "20" });
  await self.clock.advance(2000);
  acks.wasRead(3000);
  acks.wasTaken({ count: 20, start: 20, next: "40" });
  expect(self.errorText.split("\r\u001b[K").at(-1)).toBe("40 records durable, 3.9 KiB read (100 %), 2.0 KiB/s");
  acks.finish();
  expect(self.errorText.split("\r\u001b[K").at(-1)).toBe("start=0 next=40\n40 records, 3.9 KiB in 2.0 s (2.0 KiB/s)\n");
});

test("one record is told as one", () => {
  const self = new FakeProcess({ isErrorsTerminal: true, input: "x\n" });
  const acks = new AppendAcks(self, 1);
  acks.wasRead(2);
  acks.wasTaken({ count: 1, start: 0, next: "1" });
  expect(self.errorText).toContain("1 record durable, 2 bytes read");
});

test("who types lines sees each acknowledged", () => {
  const self = new FakeProcess({ isErrorsTerminal: true, isInputTerminal: true });
  new AppendAcks(self, 1).wasTaken({ count: 1, start: 0, next: "1" });
  expect(self.errorText).toBe("start=0 next=1\n");
});
