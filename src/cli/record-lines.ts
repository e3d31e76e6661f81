/** Records as the command line prints them: `<position>TAB<text>`, or `<position>TAB<N bytes>` for what is not UTF-8. */
import { isUtf8 } from "node:buffer";
import { concatBytes, EMPTY_BYTES, utf8Encoder } from "../lib/bytes.ts";

export interface PrintedRecord {
  readonly position: number | string;
  /** Null: a tombstone, printed like an empty record. */
  readonly bytes: Uint8Array | null;
}

const LINE_END = utf8Encoder.encode("\n");

export function encodeRecordLines(records: readonly PrintedRecord[]): Uint8Array {
  return concatBytes(
    records.flatMap(({ position, bytes }) => {
      const body = bytes ?? EMPTY_BYTES;
      return isUtf8(body)
        ? [utf8Encoder.encode(`${position}\t`), body, LINE_END]
        : [utf8Encoder.encode(`${position}\t<${body.length} bytes>\n`)];
    }),
  );
}
