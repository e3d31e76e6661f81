import { expect, test } from "bun:test";
import { failureLine } from "../../src/cli/failure.ts";
import { toOutputLines, toTerminalText } from "../../src/cli/terminal-text.ts";
import { utf8Decoder, utf8Encoder } from "../../src/lib/bytes.ts";

const TITLE = "\u001b]0;owned\u0007";
const CLIPBOARD = "\u001b]52;c;cm0gLXJm\u001b\\";

test.each([
  [`0\t${TITLE}\n`, "0\t\\u001b]0;owned\\u0007\n"],
  [`0\t${CLIPBOARD}\n`, "0\t\\u001b]52;c;cm0gLXJm\\u001b\\\n"],
  ["0\t\u009b2J\u0000\u007f\n", "0\t\\u009b2J\\u0000\\u007f\n"],
  ["0\tsecret\r0\tnothing\n", "0\tsecret\\u000d0\tnothing\n"],
  ["0\t\u202egnp.exe\n", "0\t\\u202egnp.exe\n"],
  ["0\t\u001b[2K\u001b[1A\n", "0\t\\u001b[2K\\u001b[1A\n"],
])("what would drive a terminal is shown: %j", (text, shown) => {
  expect(toTerminalText(text)).toBe(shown);
});

test("colours pass and end with their line; tabs, line ends and joined signs stay", () => {
  expect(toTerminalText("0\t\u001b[1;31merror\n1\tnext\n")).toBe("0\t\u001b[1;31merror\u001b[0m\n1\tnext\n");
  expect(toTerminalText("0\ta\r\nb\n1\t👩‍🚀 käse\n")).toBe("0\ta\r\nb\n1\t👩‍🚀 käse\n");
});

test("files and pipes get every byte as it is", () => {
  const lines = utf8Encoder.encode(`0\t${TITLE}\r\u202e\ufeff\n`);
  expect(toOutputLines(lines, false)).toBe(lines);
  expect(utf8Decoder.decode(toOutputLines(lines, true))).toBe("0\t\\u001b]0;owned\\u0007\\u000d\\u202e\ufeff\n");
});

test("a failure is one plain line, whatever a server said", () => {
  expect(failureLine(new Error(`no\n${TITLE}\u001b[31m`))).toBe("pico: no \\u001b]0;owned\\u0007\\u001b[31m");
});
