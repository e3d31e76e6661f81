import { expect, test } from "bun:test";
import { PicoError } from "../../src/lib/errors.ts";
import { toRefusal, WIRE_ERRORS } from "../../src/protocol/error-table.ts";

test("the wire codes and statuses are those of the contract", () => {
  const wire = Object.fromEntries(Object.entries(WIRE_ERRORS).map(([code, { status, code: wireCode }]) => [code, `${status} ${wireCode}`]));
  expect(wire).toEqual({
    bad_request: "400 bad_request",
    not_found: "404 not_found",
    gone: "410 gone",
    conflict: "409 conflict",
    closed: "409 closed",
    sequence_gap: "409 sequence_gap",
    fenced: "403 fenced",
    match_failed: "412 match_failed",
    stream_seq_conflict: "409 conflict",
    content_type_mismatch: "409 conflict",
    offset_gone: "410 offset_gone",
    capacity_exceeded: "429 capacity_exceeded",
    payload_too_large: "413 internal",
    method_not_allowed: "405 method_not_allowed",
    forbidden_origin: "403 permission_denied",
    unavailable: "503 unavailable",
    durability: "500 durability",
    unknown_outcome: "500 unknown_outcome",
    internal: "500 internal",
    storage_failed: "503 unavailable",
    storage_full: "503 unavailable",
    database_failed: "503 unavailable",
    corrupt: "500 internal",
    incompatible: "500 internal",
    fenced_node: "503 unavailable",
    locked: "500 internal",
    settings: "500 internal",
  });
});

test("what was not written for a client is not told to it", () => {
  for (const error of [new TypeError("secret"), new PicoError("internal", "secret"), new PicoError("storage_failed", "secret"), "secret"]) {
    expect(toRefusal(error).message).not.toContain("secret");
  }
});

test("the name of a damaged object is told", () => {
  expect(toRefusal(new PicoError("corrupt", "data object x/7: bad checksum")).message).toContain("x/7");
});

test("an upload that was cut is the client's doing", () => {
  const cut = Object.assign(new Error("aborted"), { name: "AbortError" });
  expect(toRefusal(cut)).toMatchObject({ status: 400, code: "bad_request" });
});
