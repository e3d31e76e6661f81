import { expect, test } from "bun:test";
import { encodeSseEvent } from "../../src/protocol/sse-encoder.ts";

const encode = (payload: string, id: string | null = null) =>
  new TextDecoder().decode(encodeSseEvent("data", id, new TextEncoder().encode(payload)));

test("an event has its name, its id and its payload without a space behind the colon", () => {
  expect(encode('[{"seq":6}]', "7")).toBe('event: data\nid: 7\ndata:[{"seq":6}]\n\n');
  expect(encode("")).toBe("event: data\ndata:\n\n");
});

test("CR, LF and CRLF each begin a line of their own", () => {
  expect(encode("a\nb\rc\r\nd")).toBe("event: data\ndata:a\ndata:b\ndata:c\ndata:d\n\n");
  expect(encode("a\n\rb\r")).toBe("event: data\ndata:a\ndata:\ndata:b\ndata:\n\n");
});

test("no payload can end its event or forge another", () => {
  for (const attack of ["x\n\nevent: control\ndata: {}\n\n", "x\r\revent: control\rdata: {}\r\r", "x\r\n\r\nevent: control\r\ndata:{}"]) {
    const lines = encode(attack).split("\n");
    expect(lines.filter((line) => line.startsWith("event:"))).toEqual(["event: data"]);
    expect(encode(attack).slice(0, -2)).not.toMatch(/\n\n|\r/);
  }
});

test("a parser gets every line back as it was, leading spaces included", () => {
  const payload = " one\n  two\nthree ";
  const lines = encode(payload)
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).replace(/^ /, ""));
  expect(lines.join("\n")).toBe(payload);
});
