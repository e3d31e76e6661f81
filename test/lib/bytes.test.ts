import { expect, test } from "bun:test";
import { ByteReader, ByteWriter } from "../../src/lib/bytes.ts";

test("numbers are written big-endian and read back, at their edges and over each growth of the buffer", () => {
  const writer = new ByteWriter(1);
  writer.u8(0xff);
  writer.u16(0x0102);
  writer.u32(0xfffefdfc);
  writer.i32(-2);
  writer.u64(Number.MAX_SAFE_INTEGER);
  writer.bigU64(0x8000_0000_0000_0001n);
  expect(writer.written().toHex()).toBe("ff0102fffefdfcfffffffe001fffffffffffff8000000000000001");
  const reader = new ByteReader(writer.copy());
  expect([reader.u8(), reader.u16(), reader.u32(), reader.i32(), reader.u64()]).toEqual([
    0xff,
    0x0102,
    0xfffefdfc,
    -2,
    Number.MAX_SAFE_INTEGER,
  ]);
  expect(reader.bigU64()).toBe(0x8000_0000_0000_0001n);
  reader.expectEnd();
});

test("what is patched stands in the place of what was written, also behind a growth of the buffer", () => {
  const writer = new ByteWriter(12);
  writer.u32(0);
  writer.bigU64(1n);
  writer.patchBigU64(4, 2n);
  writer.u32(7);
  writer.patchU32(0, 0x89abcdef);
  writer.patchBigU64(4, 0xf000_0000_0000_0003n);
  expect(writer.written().toHex()).toBe("89abcdeff00000000000000300000007");
});
