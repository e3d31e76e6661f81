import { expect, test } from "bun:test";
import { assertLimitsAgree } from "../../src/lib/limits.ts";

test("the limits agree with each other", () => {
  expect(assertLimitsAgree).not.toThrow();
});
