/** Standard input and output as data, one piece at a time: the other side sets the pace, and no more than one piece is held. */
import fs from "node:fs";
import { type Clock, sleep } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { errnoOf } from "../storage/file-error.ts";
import { type DataInput, type DataOutput, OutputClosed } from "./program-process.ts";

/** A descriptor that somebody else made non-blocking is asked again after this. */
const AGAIN_MS = 2;

export function standardInput(fileDescriptor: number, isTerminal: boolean, clock: Clock): DataInput {
  return {
    isTerminal,
    get sizeBytes() {
      return regularFileBytes(fileDescriptor);
    },
    async read(buffer) {
      for (;;) {
        try {
          return await readSome(fileDescriptor, buffer);
        } catch (error) {
          // Windows tells the end of a pipe so.
          if (errnoOf(error) === "EOF") return 0;
          if (errnoOf(error) !== "EAGAIN") throw new Error(`the input cannot be read: ${messageOf(error)}`, { cause: error });
        }
        await sleep(clock, AGAIN_MS);
      }
    },
  };
}

export function standardOutput(fileDescriptor: number, clock: Clock): DataOutput {
  return {
    async write(bytes) {
      for (let at = 0; at < bytes.length; ) {
        try {
          at += await writeSome(fileDescriptor, bytes.subarray(at));
        } catch (error) {
          if (errnoOf(error) === "EPIPE") throw new OutputClosed("nobody reads the output any more");
          if (errnoOf(error) !== "EAGAIN") throw new Error(`the output cannot be written: ${messageOf(error)}`, { cause: error });
          await sleep(clock, AGAIN_MS);
        }
      }
    },
  };
}

function regularFileBytes(fileDescriptor: number): number | null {
  try {
    const stats = fs.fstatSync(fileDescriptor);
    return stats.isFile() ? stats.size : null;
  } catch {
    // A closed input: its first read tells.
    return null;
  }
}

function readSome(fileDescriptor: number, buffer: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.read(fileDescriptor, buffer, 0, buffer.length, null, (error, count) => (error === null ? resolve(count) : reject(error)));
  });
}

function writeSome(fileDescriptor: number, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.write(fileDescriptor, bytes, 0, bytes.length, null, (error, count) => (error === null ? resolve(count) : reject(error)));
  });
}
