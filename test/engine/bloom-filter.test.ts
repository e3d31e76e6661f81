import { expect, test } from "bun:test";
import { BloomFilter } from "../../src/engine/bloom-filter.ts";
import { ByteReader, ByteWriter } from "../../src/lib/bytes.ts";
import { Chance } from "./record-fixtures.ts";

function stored(filter: BloomFilter): BloomFilter {
  const out = new ByteWriter();
  filter.encode(out);
  const reader = new ByteReader(out.copy());
  const decoded = BloomFilter.decode(reader);
  reader.expectEnd();
  return decoded;
}

test("a filter never denies an id that was added, also after it was stored", () => {
  const chance = new Chance(1);
  for (const count of [0, 1, 2, 1000]) {
    const ids = Array.from({ length: count }, () => chance.below(2 ** 21) * 2 ** 32 + chance.below(2 ** 32));
    for (const filter of [BloomFilter.of(ids), stored(BloomFilter.of(ids))]) {
      for (const id of ids) expect(filter.mayContain(id)).toBe(true);
    }
  }
  expect(BloomFilter.of([]).mayContain(1)).toBe(false);
});

test("a filter lets at most 0.15 % of other ids through, for dense, spaced and random ids", () => {
  const chance = new Chance(2);
  const kinds = [
    (i: number) => i,
    (i: number) => i * 2 ** 20,
    (i: number) => i * 2 ** 32,
    () => chance.below(2 ** 21) * 2 ** 32 + chance.below(2 ** 32),
  ];
  for (const idOf of kinds) {
    const filter = BloomFilter.of(Array.from({ length: 20_000 }, (_, i) => idOf(2 * i)));
    let passed = 0;
    for (let i = 0; i < 100_000; i++) if (filter.mayContain(idOf(2 * i + 1))) passed += 1;
    expect(passed).toBeLessThan(150);
  }
});

test("a stored filter that makes no sense is corrupt", () => {
  for (const bytes of [[0, 0, 0, 0, 10], [0, 0, 0, 7, 10, 0], [0, 0, 0, 8, 0, 0], [0, 0, 0, 8, 33, 0], [0, 0, 0, 16, 10, 0], [0]]) {
    expect(() => BloomFilter.decode(new ByteReader(Uint8Array.from(bytes)))).toThrow(expect.objectContaining({ code: "corrupt" }));
  }
});
