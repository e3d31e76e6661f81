import { expect, test } from "bun:test";
import { durableStreamsEtag, matchesEtag, picoEtag } from "../../src/protocol/etag.ts";

const page = { streamId: 5, from: 0, next: 1, isClosedEmpty: false };

test("a tag names stream, format and range, and the end of a closed stream", () => {
  const what = btoa("/logs/app:json:5");
  expect(picoEtag("/logs/app", "json", page)).toBe(`"${what}:00000000000000000000:00000000000000000001"`);
  expect(picoEtag("/logs/app", "json", { ...page, from: 1, isClosedEmpty: true })).toEndWith(':00000000000000000001:c"');
});

test("another life of the name, another format and another range have other tags", () => {
  const tags = [
    picoEtag("/a", "json", page),
    picoEtag("/a", "raw", page),
    picoEtag("/a", "json", { ...page, streamId: 6 }),
    picoEtag("/a", "json", { ...page, next: 2 }),
    durableStreamsEtag(5, 0, 1, false),
    durableStreamsEtag(6, 0, 1, false),
    durableStreamsEtag(5, 0, 1, true),
  ];
  expect(new Set(tags).size).toBe(tags.length);
});

test("a list of tags is compared weakly", () => {
  expect(matchesEtag('"5:0:1"', '"5:0:1"')).toBe(true);
  expect(matchesEtag('"x", W/"5:0:1"', '"5:0:1"')).toBe(true);
  expect(matchesEtag("*", '"5:0:1"')).toBe(true);
  expect(matchesEtag('"5:0:2"', '"5:0:1"')).toBe(false);
});
