import { expect, test } from "bun:test";
import { fileError } from "../../src/storage/file-error.ts";

function refused(code: string): string {
  return fileError("lock", "/d", null, Object.assign(new Error(code), { code })).message;
}

test("a refusal says what to do where that is known", () => {
  expect(refused("ENOSPC")).toBe("lock failed at /d: ENOSPC; free space or raise the quota");
  for (const code of ["EACCES", "EROFS"]) {
    expect(refused(code)).toBe(`lock failed at /d: ${code}; give the node's user the right to write there, or name another place`);
  }
  expect(refused("EIO")).toBe("lock failed at /d: EIO");
});
