/** The first page: is the node well, how much flows, what is it made of. */
import { makeChart } from "../charts.js";
import { element, renderWhenChanged, setState, setText } from "../dom.js";
import {
  formatAge,
  formatBytes,
  formatClock,
  formatCompact,
  formatCount,
  formatInstant,
  formatNumberOf,
  formatSpan,
  NOTHING,
} from "../format.js";
import { nodeState } from "../status-bar.js";
import { makeErrors, makeLoops, makeNodes, makeTransfers } from "./overview-tables.js";

export function showOverview(root, _route, { feed, signal }) {
  const headline = element("p", { class: "headline" });
  const subline = element("p", { class: "subline" });
  const health = makeTiles(HEALTH);
  const facts = makeTiles(FACTS);
  const charts = makeCharts(feed, signal);
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
    element("section", { class: "tiles small-tiles", "aria-label": "Facts" }, facts.nodes),
    element(
      "div",
      { class: "panels" },
      element("div", { class: "panel-column" }, loops.node, nodes.node, transfers.node),
      element("div", { class: "panel-column" }, errors.node, thisNode.node),
    ),
  );
  const show = () => {
    const { state, long } = nodeState(feed);
    setState(headline, state);
    setText(headline, long);
    setText(subline, sublineOf(feed));
    health.show(feed);
    facts.show(feed);
    if (feed.activity !== null && feed.link !== "stale") for (const chart of charts) chart.show(feed.activity.samples, feed.nodeNowMs);
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
  ["Write-ahead log", ({ activity }) => (activity === null ? null : filled(activity.backlog.walBytes, activity.backlog.walBytesMax, "of"))],
  [
    "Waiting for upload",
    ({ activity }) => (activity === null ? null : filled(activity.backlog.unuploadedBytes, activity.backlog.walBytesMax, "of")),
  ],
  [
    "Command log",
    (feed) => {
      const { activity, ready } = feed;
      if (ready === null) return null;
      const at = activity?.log.lastAppliedAtMs ?? null;
      const note = at === null || at === 0 ? "nothing applied yet" : `last applied ${formatAge(feed.nodeNowMs - at)}`;
      return { value: `#${formatCount(ready.appliedIndex)}`, note };
    },
  ],
  [
    "Event loop delay",
    ({ activity }) => {
      const delayMs = activity?.samples.at(-1)?.eventLoopDelayMs ?? null;
      if (activity === null) return null;
      const worst = Math.max(0, ...activity.samples.map((sample) => sample.eventLoopDelayMs ?? 0));
      return { value: formatSpan(delayMs), note: `at most ${formatSpan(worst)} in 10 min`, state: delayMs > 250 ? "warn" : "good" };
    },
  ],
];

function filled(bytes, bytesMax, word) {
  const share = bytesMax > 0 ? bytes / bytesMax : 0;
  const state = share >= 0.9 ? "bad" : share >= 0.7 ? "warn" : "good";
  return { value: formatBytes(bytes), note: `${Math.round(share * 100)} % ${word} ${formatBytes(bytesMax)}`, share, state };
}

const FACTS = [
  ["Cluster", ({ cluster }) => cluster && { value: cluster.clusterId, note: "cluster id" }],
  ["Node", ({ cluster }) => cluster && { value: String(cluster.nodeId), note: "node id" }],
  ["Applied index", ({ cluster }) => cluster && { value: formatCount(cluster.appliedIndex), note: "of the command log" }],
  ["Streams", ({ cluster }) => cluster && { value: formatCount(cluster.streamCount), note: "in the cluster" }],
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
  ["Memory", ({ activity }) => activity && { value: formatBytes(activity.memory.residentBytes), note: "resident" }],
];

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

function makeCharts(feed, signal) {
  const rate = (member) => (sample) => (sample[member] * 1000) / feed.activity.intervalMs;
  const appendColor = "--series-append";
  const readColor = "--series-read";
  const pair = (title, members, format) =>
    makeChart({
      title,
      format: (value) => (value === null || value === undefined ? NOTHING : format(value)),
      series: members.map(([label, color, value]) => ({ label, color, value })),
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
      ["Objects to remove", formatCount(cluster.destroyedObjectBacklog)],
      [
        "Last snapshot",
        snapshot.taken === 0 ? "none since the start" : `${formatInstant(snapshot.lastAtMs)}, ${formatBytes(snapshot.lastBytes)}`,
      ],
      ["Last upload", lastUpload(activity)],
    ];
    renderWhenChanged(list, rows, () => rows.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value))));
  };
  return { node, show };
}

function lastUpload(activity) {
  const loop = activity?.loops.find(({ name }) => /upload/i.test(name));
  if (loop === undefined) return NOTHING;
  if (loop.lastSuccessAtMs === null) return "none since the start";
  const failures = loop.failures > 0 ? `, ${formatNumberOf(loop.failures, "failure")}` : "";
  return `${formatClock(loop.lastSuccessAtMs)}${failures}`;
}
