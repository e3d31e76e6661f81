/** The first page: is the node well, how much flows, what is it made of. */
import { makeChart } from "../charts.js";
import { element, renderWhenChanged, setState, setText } from "../dom.js";
import {
  formatAge,
  formatBytes,
  formatCompact,
  formatCount,
  formatInstant,
  formatNumberOf,
  formatPercent,
  formatSpan,
  NOTHING,
} from "../format.js";
import { scrubWords } from "../scrub-words.js";
import { nodeState } from "../status-bar.js";
import { makeErrors, makeLoops, makeNodes, makeTransfers } from "./overview-tables.js";

export function showOverview(root, _route, { feed, signal }) {
  const headline = element("p", { class: "headline" });
  const subline = element("p", { class: "subline" });
  const health = makeTiles(HEALTH);
  const facts = makeTiles(FACTS);
  const charts = makeCharts(signal);
  const tables = { loops: makeLoops(), nodes: makeNodes(), transfers: makeTransfers(), errors: makeErrors(), thisNode: makeThisNode() };
  const { loops, nodes, transfers, errors, thisNode } = tables;
  root.append(
    element("div", { class: "page-head" }, element("h1", { tabindex: "-1" }, "Overview"), headline, subline),
    element("section", { class: "tiles", "aria-label": "Health" }, health.nodes),
    element(
      "section",
      { class: "charts", "aria-label": "Traffic of the last ten minutes" },
      charts.map(({ node }) => node),
    ),
    element("section", { class: "tiles small-tiles fact-tiles", "aria-label": "Facts" }, facts.nodes),
    element(
      "div",
      { class: "panels" },
      element("div", { class: "panel-column" }, loops.node),
      element("div", { class: "panel-column" }, errors.node, thisNode.node),
    ),
    nodes.node,
    transfers.node,
  );
  const show = () => {
    const { state, long } = nodeState(feed);
    setState(headline, state);
    setText(headline, long);
    setText(subline, sublineOf(feed));
    health.show(feed);
    facts.show(feed);
    if (feed.activity !== null && feed.link !== "stale")
      for (const chart of charts) chart.show(feed.activity.samples, feed.nodeNowMs, feed.activity.startedAtMs);
    for (const table of Object.values(tables)) table.show(feed);
  };
  feed.listenToAll(show, signal);
  show();
  return { title: "Overview" };
}

function sublineOf({ cluster, activity, nodeNowMs }) {
  const words = [];
  if (cluster !== null) words.push(`Cluster ${cluster.clusterId}, node ${cluster.nodeId}`);
  if (activity !== null) words.push(`started ${formatAge(nodeNowMs - activity.startedAtMs)}`);
  return words.join(" · ");
}

/** Each: what it is called, and `{ value, note, share?, state? }` of the feed; null while nothing is known. */
const HEALTH = [
  [
    "Write-ahead log",
    ({ activity }) => {
      if (activity === null) return null;
      const { walBytes, walBytesMax, isStalled } = activity.backlog;
      const tile = filled(walBytes, walBytesMax);
      return isStalled ? { ...tile, state: "bad", note: "stalled: appends are refused" } : tile;
    },
  ],
  [
    "Waiting for upload",
    ({ activity }) => {
      if (activity === null) return null;
      const { unuploadedBytes, walBytesMax, oldestAgeMs } = activity.backlog;
      const tile = filled(unuploadedBytes, walBytesMax);
      return oldestAgeMs === null ? tile : { ...tile, note: `${tile.note}, oldest ${formatSpan(oldestAgeMs)}` };
    },
  ],
  [
    "Command log",
    (feed) => {
      if (feed.activity === null) return null;
      const { appliedIndex, lastAppliedAtMs, unapplied } = feed.activity.log;
      const age = lastAppliedAtMs === null ? "nothing applied yet" : `last applied ${formatAge(feed.nodeNowMs - lastAppliedAtMs)}`;
      const behind = unapplied > 0 ? `${formatNumberOf(unapplied, "row")} behind, ` : "";
      return { value: `#${formatCount(appliedIndex)}`, note: `${behind}${age}` };
    },
  ],
  [
    "Refused or failed",
    ({ activity }) => {
      if (activity === null) return null;
      const refused = sumOf(activity.samples, "refused");
      const failed = sumOf(activity.samples, "failed");
      const note =
        refused + failed === 0 ? "in the last 10 min" : `${formatCount(refused)} refused, ${formatCount(failed)} failed in 10 min`;
      return { value: formatCount(refused + failed), note, state: failed > 0 ? "bad" : refused > 0 ? "warn" : "good" };
    },
  ],
];

function filled(bytes, bytesMax) {
  if (bytesMax === 0) return { value: formatBytes(bytes), note: "the node does not append yet" };
  const share = bytes / bytesMax;
  const state = share >= 0.9 ? "bad" : share >= 0.7 ? "warn" : "good";
  return { value: formatBytes(bytes), note: `${formatPercent(share)} of ${formatBytes(bytesMax)}`, share, state };
}

function sumOf(samples, member) {
  return samples.reduce((sum, sample) => sum + sample[member], 0);
}

/** The cards that every version has, then what only this one knows. */
const FACTS = [
  ["Cluster", ({ cluster }) => cluster && { value: cluster.clusterId, note: "cluster id" }],
  ["Node", ({ cluster }) => cluster && { value: String(cluster.nodeId), note: "node id" }],
  ["Applied index", ({ cluster }) => cluster && { value: formatCount(cluster.appliedIndex), note: "of the command log" }],
  ["Streams", ({ cluster, activity }) => cluster && { value: formatCount(cluster.streamCount), note: openNote(activity) }],
  ["Objects", ({ cluster }) => cluster && { value: formatCount(cluster.objectCount), note: objectNote(cluster) }],
  ["Maintenance", ({ cluster }) => cluster && { value: leaseWord(cluster.leaseHolder), note: "lease of this node" }],
  [
    "Live readers",
    ({ activity }) =>
      activity && {
        value: formatCount(activity.readers.longPoll + activity.readers.sse),
        note: `${formatCount(activity.readers.sse)} SSE, ${formatCount(activity.readers.longPoll)} long poll`,
      },
  ],
  ["Event loop delay", ({ activity }) => activity && loopDelay(activity.samples)],
  ["Memory", ({ activity }) => activity && { value: formatBytes(activity.memory.residentBytes), note: "resident" }],
  ["Record cache", ({ activity }) => activity && cacheTile(activity.caches.log)],
];

function openNote(activity) {
  return activity === null ? "\u00a0" : `${formatCount(activity.streams.open)} in use here`;
}

function loopDelay(samples) {
  const worst = Math.max(0, ...samples.map(({ eventLoopDelayMs }) => eventLoopDelayMs));
  return {
    value: formatSpan(samples.at(-1)?.eventLoopDelayMs),
    note: `at most ${formatSpan(worst)}`,
    state: samples.at(-1)?.eventLoopDelayMs > 500 ? "warn" : "quiet",
  };
}

function cacheTile({ bytes, hits, misses }) {
  const share = hits + misses === 0 ? "not asked yet" : `${formatPercent(hits / (hits + misses))} found there`;
  return { value: formatBytes(bytes), note: share };
}

function objectNote({ levels }) {
  const bytes = (levels ?? []).reduce((sum, level) => sum + level.bytes, 0);
  return `${formatBytes(bytes)} stored`;
}

function leaseWord(isHolder) {
  if (isHolder === null) return NOTHING;
  return isHolder ? "Holder" : "Standby";
}

function makeTiles(definitions) {
  const tiles = definitions.map(([label, read]) => {
    const value = element("p", { class: "tile-value" }, NOTHING);
    const note = element("p", { class: "tile-note" }, "\u00a0");
    const meter = element("div", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": "100" });
    meter.hidden = true;
    const node = element("div", { class: "panel tile" }, element("h2", {}, label), value, note, meter);
    const show = (feed) => {
      const now = read(feed);
      if (now === null) return;
      setText(value, now.value);
      value.title = now.value;
      setText(note, now.note);
      setState(node, now.state ?? "quiet");
      meter.hidden = now.share === undefined;
      if (now.share === undefined) return;
      const percent = Math.min(100, Math.round(now.share * 1000) / 10);
      meter.setAttribute("aria-valuenow", String(percent));
      // A bar that is not empty is seen.
      meter.style.setProperty("--share", `${now.share > 0 ? Math.max(percent, 0.6) : 0}%`);
    };
    return { node, show };
  });
  const show = (feed) => {
    for (const tile of tiles) tile.show(feed);
  };
  return { nodes: tiles.map(({ node }) => node), show };
}

function makeCharts(signal) {
  const rate = (member) => (sample) => (sample.spanMs > 0 ? (sample[member] * 1000) / sample.spanMs : null);
  const appendColor = "--series-append";
  const readColor = "--series-read";
  const pair = (title, members, format, isBinary = false) =>
    makeChart({
      title,
      format: (value) => (value === null || value === undefined ? NOTHING : format(value)),
      series: members.map(([label, color, value]) => ({ label, color, value })),
      isBinary,
      signal,
    });
  const latency = (title, kind) =>
    pair(
      title,
      [
        ["p50", "--series-p50", (sample) => sample[`${kind}P50Ms`]],
        ["p99", "--series-p99", (sample) => sample[`${kind}P99Ms`]],
      ],
      formatSpan,
    );
  return [
    pair(
      "Records per second",
      [
        ["appended", appendColor, rate("appendRecords")],
        ["read", readColor, rate("readRecords")],
      ],
      formatCompact,
    ),
    pair(
      "Bytes per second",
      [
        ["appended", appendColor, rate("appendBytes")],
        ["read", readColor, rate("readBytes")],
      ],
      formatBytes,
      true,
    ),
    latency("Append latency", "append"),
    latency("Read latency", "read"),
  ];
}

/** Facts that are not for the tiles. */
function makeThisNode() {
  const list = element("dl", { class: "facts" });
  const node = element("section", { class: "panel" }, element("h2", {}, "This node"), list);
  const show = ({ cluster, activity }) => {
    if (cluster === null) return;
    const { snapshot } = cluster;
    const rows = [
      ["Stream listener", cluster.advertisedAddress],
      ["Node epoch", String(cluster.nodeEpoch)],
      ["Registered", cluster.registered ? "yes" : "no"],
      ["Objects to remove", removalWords(cluster.gc)],
      [
        "Last snapshot",
        snapshot.taken === 0 ? "none since the start" : `${formatInstant(snapshot.lastAtMs)}, ${formatBytes(snapshot.lastBytes)}`,
      ],
      ["Last scrub", scrubWords(cluster.scrub)],
      ["Uploads", uploadWords(activity)],
      ["Block cache", activity === null ? NOTHING : blockCacheWords(activity.caches.block)],
    ];
    renderWhenChanged(list, rows, () => rows.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value))));
  };
  return { node, show };
}

function removalWords({ backlog, refused, refusedSinceMs, lastRefusal }) {
  if (lastRefusal === null) return formatCount(backlog);
  const { code, key } = lastRefusal;
  return `${formatCount(backlog)}, ${formatCount(refused)} refused by the store since ${formatInstant(refusedSinceMs)}, last ${key}: ${code}`;
}

function uploadWords(activity) {
  if (activity === null) return NOTHING;
  const { count, bytes, failures } = activity.uploads;
  const failed = failures > 0 ? `, ${formatNumberOf(failures, "failure")}` : "";
  return count === 0 ? `none since the start${failed}` : `${formatNumberOf(count, "upload")}, ${formatBytes(bytes)}${failed}`;
}

function blockCacheWords({ bytes, bytesMax }) {
  return `${formatBytes(bytes)} of ${formatBytes(bytesMax)}`;
}
