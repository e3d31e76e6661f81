/** All cases of the client. */
import { durableCases } from "./cases/durable-cases.ts";
import { faultCases } from "./cases/fault-cases.ts";
import { liveCases } from "./cases/live-cases.ts";
import { picoCases } from "./cases/pico-cases.ts";
import { producerCases } from "./cases/producer-cases.ts";
import type { ClientCase } from "./client-suite.ts";

export const clientCases: readonly ClientCase[] = [...picoCases, ...durableCases, ...liveCases, ...producerCases, ...faultCases];
