import { test } from "bun:test";
import { stalledReadersCostLittle, stalledSendersLeaveRoom } from "../cluster/slow-clients.ts";

test(
  "2,000 sockets that stall for two minutes leave the node to others, within bounded memory",
  () => stalledSendersLeaveRoom(2000, 120_000),
  10 * 60_000,
);

test(
  "200 SSE readers that stop reading while 256 MiB are appended cost bounded memory, and get every record when they go on",
  () => stalledReadersCostLittle(200, 256, 20),
  20 * 60_000,
);
