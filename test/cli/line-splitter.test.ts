import { expect, test } from "bun:test";
import { LineSplitter, LineTooLong } from "../../src/cli/line-splitter.ts";

/** The lines of a text that comes in pieces of `size` bytes. */
function split(text: string, size: number, bytesMax = 100): string[] {
  const splitter = new LineSplitter(bytesMax);
  const lines: string[] = [];
  // One buffer for all pieces, as a reader of input has.
  const buffer = Buffer.alloc(size);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) {
    const length = bytes.copy(buffer, 0, at, at + size);
    for (const line of splitter.split(buffer.subarray(0, length))) lines.push(Buffer.from(line).toString());
  }
  const rest = splitter.rest();
  if (rest !== null) lines.push(Buffer.from(rest).toString());
  return lines;
}

test("lines are the same wherever the input is cut", () => {
  for (const [text, lines] of [
    ["", []],
    ["\n", [""]],
    ["a", ["a"]],
    ["a\n", ["a"]],
    ["a\r\nb", ["a", "b"]],
    ["\r\n\n\r\r\nx\ry\n", ["", "", "\r", "x\ry"]],
    ["end\r", ["end\r"]],
    ["größer\nais 山\n", ["größer", "ais 山"]],
  ] as const) {
    for (let size = 1; size <= 12; size++) expect([text, size, split(text, size)]).toEqual([text, size, [...lines]]);
  }
});

test("a line of the greatest length passes, a longer one is refused, with and without an end", () => {
  for (const size of [1, 3, 64]) {
    expect(split(`${"a".repeat(10)}\nb`, size, 10)).toEqual(["a".repeat(10), "b"]);
    expect(() => split(`${"a".repeat(11)}\n`, size, 10)).toThrow(LineTooLong);
    expect(() => split("a".repeat(11), size, 10)).toThrow(LineTooLong);
  }
});
