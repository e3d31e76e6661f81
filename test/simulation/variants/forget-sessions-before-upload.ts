/** Drops every settled session at each sweep, with the tail state that the log cache keeps for it. */
import { LogCache } from "../../../src/engine/log-cache.ts";
import { SessionTable } from "../../../src/streams/session-table.ts";

export function forgetSessionsBeforeUpload(): () => void {
  const { sweep } = SessionTable.prototype;
  const { pendingTailState } = LogCache.prototype;
  SessionTable.prototype.sweep = function (this: SessionTable): void {
    for (const session of [...this.sessions()]) {
      if (session.isSettled && session.frozen === null) this.remove(session, "moved");
    }
  };
  LogCache.prototype.pendingTailState = () => null;
  return () => {
    SessionTable.prototype.sweep = sweep;
    LogCache.prototype.pendingTailState = pendingTailState;
  };
}
