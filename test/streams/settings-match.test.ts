import { describe, expect, test } from "bun:test";
import { matchesSettings } from "../../src/streams/settings-match.ts";
import type { CreateRequest, StreamInfo } from "../../src/streams/stream-service.ts";

function request(changes: Partial<CreateRequest> = {}): CreateRequest {
  return {
    name: "/s",
    contentType: "text/plain",
    ttlSeconds: null,
    expiresAtMs: null,
    isClosed: false,
    records: [],
    fork: null,
    ...changes,
  };
}

function existing(changes: Partial<StreamInfo> = {}): StreamInfo {
  const settings = { contentType: "text/plain; charset=utf-8", ttlSeconds: null, expiresAtMs: null };
  return { streamId: 1, name: "/s", settings, startOffset: 0, nextOffset: 0, isClosed: false, fork: null, ...changes };
}

const ORIGIN = { sourceId: 9, sourceName: "/source", offset: 3, requestedOffset: 3, requestedSubOffset: 0 };
const FORK = { sourceName: "/source", offset: 3, subOffset: 0 };
const withTtl = (ttlSeconds: bigint | null) => existing({ settings: { contentType: "text/plain", ttlSeconds, expiresAtMs: null } });

describe("a PUT of an existing name asks for what is there", () => {
  test.each([
    ["the same MIME type, whatever parameters and case", request({ contentType: "TEXT/Plain; a=b" }), existing(), true],
    ["another MIME type", request({ contentType: "application/json" }), existing(), false],
    ["closed, and it is open", request({ isClosed: true }), existing(), false],
    ["open, and it was closed since", request(), existing({ isClosed: true }), false],
    ["closed, and it is", request({ isClosed: true }), existing({ isClosed: true }), true],
    ["the same TTL", request({ ttlSeconds: 60n }), withTtl(60n), true],
    ["another TTL", request({ ttlSeconds: 61n }), withTtl(60n), false],
    ["no TTL, and it has one", request(), withTtl(60n), false],
    ["a TTL of 0, and it has none", request({ ttlSeconds: 0n }), withTtl(null), false],
    ["another expiry", request({ expiresAtMs: 5 }), existing(), false],
    ["the same fork", request({ fork: FORK }), existing({ fork: ORIGIN }), true],
    ["the same fork without naming a type", request({ fork: FORK, contentType: null }), existing({ fork: ORIGIN }), true],
    ["a fork of another offset", request({ fork: { ...FORK, offset: 2 } }), existing({ fork: ORIGIN }), false],
    ["a fork of another sub-offset", request({ fork: { ...FORK, subOffset: 1 } }), existing({ fork: ORIGIN }), false],
    ["a fork, and it is none", request({ fork: FORK }), existing(), false],
    ["no fork, and it is one", request(), existing({ fork: ORIGIN }), false],
  ])("%s", (_, asked, there, expected) => {
    expect(matchesSettings(asked, there)).toBe(expected);
  });
});
