/** Tables of the overview: background loops, errors, nodes, transfers. Each is made anew only when it changed. */
import { element, renderWhenChanged, setText } from "../dom.js";
import { formatAge, formatClock, formatCount, formatInstant, formatSpan, NOTHING } from "../format.js";

/** A loop is late when it has not succeeded for this many of its intervals, and at least this long. */
const LATE_INTERVALS = 3;
const LATE_MS_MIN = 10_000;
const ERRORS_SHOWN = 20;

export function makeLoops() {
  const body = element("tbody");
  const panel = tablePanel("Background loops", ["Loop", "Every", "Last success", "Failures"], body);
  const show = (feed) => {
    if (feed.activity === null) return;
    const now = feed.nodeNowMs;
    const rows = feed.activity.loops.map((loop) => [loop, loopState(loop, now), ageOf(loop.lastSuccessAtMs, now)]);
    renderWhenChanged(body, rows, () => rows.map(loopRow));
    panel.showEmpty(rows.length === 0 ? "No loop has run yet." : null);
  };
  return { node: panel.node, show };
}

function loopRow([loop, { state, words }, age]) {
  const failure = loop.lastError === null ? null : `${formatClock(loop.lastFailureAtMs)} ${loop.lastError}`;
  return element(
    "tr",
    {},
    element("th", { scope: "row", class: "number" }, dot(state, words), loop.name.replaceAll("_", " ")),
    element("td", { class: "number" }, loop.intervalMs > 0 ? formatSpan(loop.intervalMs) : "when needed"),
    element("td", { class: "number" }, age),
    element(
      "td",
      { class: "number", title: failure },
      formatCount(loop.failures),
      failure === null ? null : element("p", { class: "row-note" }, failure),
    ),
  );
}

function loopState({ intervalMs, lastSuccessAtMs, lastFailureAtMs }, now) {
  if (lastFailureAtMs !== null && (lastSuccessAtMs === null || lastFailureAtMs > lastSuccessAtMs))
    return { state: "bad", words: "failing" };
  if (lastSuccessAtMs === null) return { state: "quiet", words: "not run yet" };
  const isLate = intervalMs > 0 && now - lastSuccessAtMs > Math.max(LATE_MS_MIN, LATE_INTERVALS * intervalMs);
  return isLate ? { state: "warn", words: "late" } : { state: "good", words: "well" };
}

export function makeErrors() {
  const list = element("ul", { class: "errors" });
  const empty = element("p", { class: "empty-line" }, "Waiting for the node");
  const node = element("section", { class: "panel" }, element("h2", {}, "Recent warnings and errors"), list, empty);
  const show = ({ activity }) => {
    if (activity === null) return;
    const errors = [...activity.errors].sort((a, b) => b.atMs - a.atMs).slice(0, ERRORS_SHOWN);
    renderWhenChanged(list, errors, () => errors.map(errorItem));
    empty.hidden = errors.length > 0;
    setText(empty, "None since the start.");
  };
  return { node, show };
}

function errorItem({ atMs, level, message, count }) {
  return element(
    "li",
    {},
    dot(level === "warn" ? "warn" : "bad", level),
    element("time", { title: formatInstant(atMs) }, formatClock(atMs)),
    element("span", { class: "error-text" }, message),
    count > 1 ? element("span", { class: "tag" }, `${formatCount(count)} times`) : null,
  );
}

export function makeNodes() {
  const body = element("tbody");
  const panel = tablePanel("Nodes", ["Id", "Address", "State", "Epoch", "Slots", "Open", "Placed"], body);
  const show = ({ nodes }) => {
    if (nodes === null) return;
    renderWhenChanged(body, nodes, () => nodes.map(nodeRow));
    panel.showEmpty(nodes.length === 0 ? "No node is registered yet." : null);
  };
  return { node: panel.node, show };
}

function nodeRow(node) {
  return element(
    "tr",
    {},
    element(
      "th",
      { scope: "row", class: "number" },
      String(node.nodeId),
      node.local ? element("span", { class: "tag" }, "this node") : null,
    ),
    element("td", { class: "mono" }, node.advertisedAddress ?? NOTHING),
    element("td", {}, element("span", { class: "tag", "data-state": node.state === "live" ? "good" : "quiet" }, node.state)),
    element("td", { class: "number" }, String(node.nodeEpoch)),
    element("td", { class: "number" }, formatCount(node.slots)),
    element("td", { class: "number" }, formatCount(node.openingCount)),
    element("td", { class: "number" }, formatCount(node.placedCount)),
  );
}

export function makeTransfers() {
  const body = element("tbody");
  const panel = tablePanel("Pending transfers", ["Stream id", "From node", "To node"], body);
  const show = ({ cluster }) => {
    if (cluster === null) return;
    const transfers = cluster.pendingTransfers;
    renderWhenChanged(body, transfers, () =>
      transfers.map(({ streamId, fromNode, toNode }) =>
        element(
          "tr",
          {},
          [streamId, fromNode ?? NOTHING, toNode].map((value) => element("td", { class: "number" }, String(value))),
        ),
      ),
    );
    panel.showEmpty(transfers.length === 0 ? "No stream is moving between nodes." : null);
  };
  return { node: panel.node, show };
}

/** A table under a heading; `showEmpty` puts a sentence in its place. */
function tablePanel(title, columns, body) {
  const head = element(
    "thead",
    {},
    element(
      "tr",
      {},
      columns.map((column) => element("th", { scope: "col" }, column)),
    ),
  );
  const scroller = element(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": title },
    element("table", {}, head, body),
  );
  const empty = element("p", { class: "empty-line" }, "Waiting for the node");
  scroller.hidden = true;
  const node = element("section", { class: "panel" }, element("h2", {}, title), scroller, empty);
  const showEmpty = (words) => {
    scroller.hidden = words !== null;
    empty.hidden = words === null;
    if (words !== null) setText(empty, words);
  };
  return { node, showEmpty };
}

function dot(state, words) {
  return element("span", { class: "dot", "data-state": state, role: "img", "aria-label": words, title: words });
}

function ageOf(atMs, now) {
  return atMs === null ? "never" : formatAge(now - atMs);
}
