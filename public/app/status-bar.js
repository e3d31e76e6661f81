/**
 * What every page says of the node: the pill above, the bar below. Both are always there, so that nothing
 * moves when the node goes away; the page itself is then dimmed.
 */
import { setState, setText } from "./dom.js";
import { formatAge, formatBytes, formatClock, formatNumberOf } from "./format.js";
import { POLL_MS } from "./node-feed.js";

const NEVER = new AbortController().signal;

/** What a recovery does, in the order in which it does it. */
const RECOVERY_STEPS = {
  survey: "it checks the log",
  replay: "it replays the log",
  upload: "it uploads what it replayed",
  end: "it ends its earlier life",
};

export function wireStatusBar(feed) {
  const show = () => {
    showPill(feed);
    showBar(feed);
    document.documentElement.dataset.link = feed.link;
  };
  feed.listen(show, NEVER);
  document.getElementById("status-retry").addEventListener("click", () => feed.refresh());
  // Ages go on while no answer comes.
  setInterval(() => {
    if (!document.hidden && feed.link === "stale") show();
  }, 1000);
}

/** The state of the node in a few words: `{ state, short, long }`. */
export function nodeState(feed) {
  const { link, ready, lastDataAtMs } = feed;
  if (link === "stale") {
    const since = lastDataAtMs === null ? "" : ` since ${formatClock(lastDataAtMs)}`;
    return { state: "bad", short: "Unreachable", long: `The node has not answered${since}` };
  }
  if (ready === null) return { state: "quiet", short: "Connecting", long: "Waiting for the first answer" };
  if (ready.ready && ready.stalled) {
    return { state: "bad", short: "Stalled", long: "This node reads, and takes no appends: its write-ahead log is stalled" };
  }
  if (ready.ready) return { state: "good", short: "Ready", long: "This node is ready" };
  if (ready.phase === "stopping" || !ready.serving) return { state: "warn", short: "Stopping", long: "This node is stopping" };
  return { state: "warn", short: "Not ready", long: `This node is ${phaseWords(ready)}` };
}

function phaseWords({ phase, recovery }) {
  if (recovery === null || recovery === undefined || phase !== "recovering") return phase ?? "starting";
  const { step, segments, bytes } = recovery;
  return `recovering: ${RECOVERY_STEPS[step] ?? step}, ${formatNumberOf(segments, "segment")} and ${formatBytes(bytes)} so far`;
}

function showPill(feed) {
  const { state, short, long } = nodeState(feed);
  const pill = document.getElementById("status-pill");
  setState(pill, state);
  setText(pill, short);
  pill.title = long;
}

function showBar(feed) {
  const { link, lastDataAtMs, retryAtMs, problem } = feed;
  const isStale = link === "stale";
  setText(document.getElementById("status-update"), updateWords(link, lastDataAtMs));
  setText(
    document.getElementById("status-error"),
    problem === null ? "" : `${formatClock(problem.atMs)} ${problem.text}${retryWords(retryAtMs)}`,
  );
  document.getElementById("status-retry").hidden = !isStale;
}

function updateWords(link, lastDataAtMs) {
  if (lastDataAtMs === null) return link === "stale" ? "No data yet" : "Waiting for the first answer of the node";
  if (link === "stale") return `Data of ${formatClock(lastDataAtMs)}, ${formatAge(Date.now() - lastDataAtMs)}`;
  return `Updated ${formatClock(lastDataAtMs)}, every ${POLL_MS / 1000} s`;
}

function retryWords(retryAtMs) {
  if (retryAtMs === null) return "";
  return `; asked again in ${Math.max(0, Math.ceil((retryAtMs - Date.now()) / 1000))} s`;
}
