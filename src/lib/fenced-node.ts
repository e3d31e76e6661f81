/** The error that ends a process whose registration another one has fenced: what happened, who took over, what to do. */
import { type Facts, PicoError } from "./errors.ts";
import { formatRegistration, type RegistrationName } from "./registration.ts";

const OWN_ID = "leave this process down; if it is meant to be another node, start it with a --node-id of its own";
const OTHER = "start this node again, unless a second process has its --node-id, or pico restore has replaced it: then leave it down";

/** `found`: how it came out. `by`: who fenced it; null where that is not known. */
export function fencedNode(self: RegistrationName, by: RegistrationName | null, found: string, facts: Facts = {}): PicoError {
  const isSameId = by?.nodeId === self.nodeId;
  const who = by === null ? "another process" : isSameId ? `a later process of node ${by.nodeId}` : `node ${by.nodeId}`;
  const name = by === null ? "" : ` (${formatRegistration(by)})`;
  const message =
    `${who}${name} has taken over from ${formatRegistration(self)}, which is fenced and stops: ${found}. ` +
    `What was acknowledged is kept. Remedy: ${isSameId ? OWN_ID : OTHER}`;
  return new PicoError("fenced_node", message, { ...facts, by: by === null ? null : formatRegistration(by) });
}
