/** `pico append`: each line of the input becomes a record. */
import { BATCH_RECORDS_MAX, CLI_PRODUCER_IDS } from "../lib/limits.ts";
import { randomBelow } from "../lib/random.ts";
import { AppendAcks } from "./append-acks.ts";
import { AppendRun, AppendStopped } from "./append-run.ts";
import { RETRY_FLAG, readClientSettings, readRetryMs } from "./client-flags.ts";
import { type CommandCall, type CommandDefinition, STREAM_OPERAND } from "./command-definition.ts";
import { failureLine, unsupported } from "./failure.ts";
import { defineCallFlag } from "./flag-definition.ts";
import { OutageNotice } from "./outage-notice.ts";
import type { ProgramProcess } from "./program-process.ts";
import { type LineOptions, openStream } from "./stream-client.ts";

/** As a shell reports an end by SIGINT. */
const EXIT_CODE_INTERRUPTED = 130;
/** The lower part of an epoch is chance, the upper one the time. */
const EPOCHS_PER_MS = 1024;

export const APPEND_COMMAND: CommandDefinition = {
  name: "append",
  summary: "append each line of the input as a record",
  description: [
    "Reads lines from stdin and appends each as a record, in order and once, as they come: a lone line at once, and what comes " +
      "faster than the server answers in large requests. The end of a line is no part of the record; the last line may have none. Lines are UTF-8. " +
      "Memory is bounded, whatever the size of the input.",
    "Each acknowledgement is a line on stderr, start=FIRST next=BEHIND-THE-LAST: one a record, or with --batch N one a request of up to N records. " +
      "Where stderr is a terminal and stdin is not, there is a line of progress and one acknowledgement at the end.",
    "A request whose answer is lost is sent again, also to a server that was restarted, and is in the stream once. A failure tells how many lines are durable and how to go on. " +
      "Running the command again from the beginning appends everything again.",
  ],
  operands: [STREAM_OPERAND],
  flags: [
    defineCallFlag(
      "--content-type",
      "TYPE",
      "type of the appended data, over Durable Streams; the Pico protocol has no use for it",
      "that of the stream",
    ),
    defineCallFlag("--batch", "NUMBER", `records of one request, at most; from 1 to ${BATCH_RECORDS_MAX}. Over Durable Streams only 1`, 1),
    RETRY_FLAG,
  ],
  isClient: true,
  examples: [
    { line: "echo hello | pico append /logs/app", does: "append one record" },
    { line: "pico append /logs/app --batch 1000 < app.log", does: "append a file, with an acknowledgement for each 1,000 lines or fewer" },
    { line: "tail -F app.log | pico append /logs/app --retry-sec 3600", does: "follow a file, and wait up to an hour for the server" },
  ],
  run: append,
};

async function append({ operands: [name = ""], values, self }: CommandCall): Promise<number> {
  const settings = readClientSettings(values);
  const batchRecordsMax = values.number("--batch", 1, BATCH_RECORDS_MAX) ?? 1;
  const isPico = settings.protocol === "pico";
  if (!isPico && batchRecordsMax > 1) throw unsupported(`--batch ${batchRecordsMax}: Durable Streams takes one message per request`);
  const contentType = values.text("--content-type")?.text ?? null;
  const acks = new AppendAcks(self, batchRecordsMax);
  const stream = openStream(settings, name, new OutageNotice(self, readRetryMs(values), acks.progress));
  const stopping = new AbortController();
  const options: LineOptions = {
    contentType,
    ...drawIdentity(self),
    batchRecordsMax: batchRecordsMax === 1 ? BATCH_RECORDS_MAX : batchRecordsMax,
    signal: stopping.signal,
    onTaken: (taken) => acks.wasTaken(taken),
  };
  const emptyLineRefusal = isPico ? null : "Durable Streams has no empty records";
  const run = new AppendRun({ input: self.input, name, emptyLineRefusal, acks, open: () => stream.openLines(options) });
  watchSignals(self, run, stopping);
  if (self.input.isTerminal && self.isErrorsTerminal) self.errors.write("each line that you type is a record; Ctrl-D ends the input\n");
  try {
    await run.run();
    acks.finish();
    return 0;
  } catch (error) {
    acks.progress.clear();
    if (!(error instanceof AppendStopped && error.isInterrupted)) throw error;
    self.errors.write(`${failureLine(error)}\n`);
    return EXIT_CODE_INTERRUPTED;
  }
}

/**
 * A stream remembers its producers for days, and no more than 10,000 of them: a command that is run often must not come
 * with a new id each time. Two that draw the same id take it from each other, and none of them loses a line.
 */
function drawIdentity({ random, clock }: ProgramProcess): Pick<LineOptions, "producerId" | "producerEpoch"> {
  return {
    producerId: `pico-append-${randomBelow(random, CLI_PRODUCER_IDS)}`,
    producerEpoch: clock.nowMs() * EPOCHS_PER_MS + randomBelow(random, EPOCHS_PER_MS),
  };
}

/** The first signal ends the reading, another one the waiting for what was read to become durable. */
function watchSignals(self: ProgramProcess, run: AppendRun, stopping: AbortController): void {
  let isFirst = true;
  self.onStopSignal(() => {
    if (isFirst) run.interrupt();
    else stopping.abort(new Error("interrupted again"));
    isFirst = false;
  });
}
