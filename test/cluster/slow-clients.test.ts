import { test } from "bun:test";
import { stalledReadersCostLittle, stalledSendersLeaveRoom } from "./slow-clients.ts";

test(
  "2,000 sockets that stall in the head or in the body leave the node to others, within bounded memory",
  () => stalledSendersLeaveRoom(2000, 0),
  60_000,
);

test(
  "40 SSE readers that stop reading while 48 MiB are appended cost bounded memory, and get every record when they go on",
  () => stalledReadersCostLittle(40, 48, 4),
  90_000,
);
