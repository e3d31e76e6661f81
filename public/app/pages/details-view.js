/** What the node knows of a stream beside its records: ownership, producers, forks, data objects. */
import { element, renderWhenChanged } from "../dom.js";
import { formatBytes, formatCount, formatInstant, NOTHING } from "../format.js";
import { streamHref } from "../routes.js";

export function showDetailsView(place, { name, stream, signal }) {
  const grid = element("div", { class: "detail-grid" });
  place.append(grid);
  const show = () => {
    const { inspection } = stream;
    renderWhenChanged(grid, inspection, () => (inspection === null ? [waiting()] : panels(name, inspection)));
  };
  stream.listen(show, signal);
  show();
}

function waiting() {
  return panel("Details", element("p", { class: "empty-line" }, "Waiting for the node"));
}

function panels(name, known) {
  return [panel("Stream", facts(streamFacts(known))), panel("Forks", forkTree(name, known)), producers(known), objects(known)];
}

function streamFacts(known) {
  const { serving, pendingTransfer, deadlineMs, expiresAtMs } = known;
  return [
    ["Stream id", String(known.streamId)],
    ["Created", formatInstant(known.createdAtMs)],
    ["Served by", `node ${known.ownerNodeId}${known.ownerLocal ? ", this one" : ""}`],
    ["State", `${known.state}, epoch ${known.epoch}`],
    ["In data objects", `up to offset ${formatCount(known.endOffset)}`],
    ["Live readers", serving === null ? NOTHING : formatCount(serving.liveReads)],
    ["Expires", expiry(deadlineMs ?? expiresAtMs, known.ttlSeconds)],
    ["Transfer", pendingTransfer === null ? "none pending" : `to node ${pendingTransfer.toNode}`],
  ];
}

function expiry(atMs, ttlSeconds) {
  if (atMs === null) return "never";
  return ttlSeconds === null ? formatInstant(atMs) : `${formatInstant(atMs)}, unless it is used before`;
}

/** The source above, the stream, its forks below. */
function forkTree(name, { fork, forks }) {
  if (fork === null && forks.count === 0) return element("p", { class: "empty-line" }, "It is no fork, and has none.");
  const own = element("li", {}, element("strong", {}, name));
  if (forks.count > 0) own.append(element("ul", {}, forks.items.map(forkItem), leftOut(forks)));
  if (fork === null) return element("ul", { class: "fork-tree" }, own);
  const source = fork.name === null ? "a stream that is no longer kept" : element("a", { href: streamHref(fork.name) }, fork.name);
  return element(
    "ul",
    { class: "fork-tree" },
    element("li", {}, source, ` below offset ${formatCount(fork.offset)}`, element("ul", {}, own)),
  );
}

function forkItem({ name, offset, deleted }) {
  const link = deleted ? element("span", { class: "mono" }, name) : element("a", { href: streamHref(name) }, name);
  return element("li", {}, link, ` from offset ${formatCount(offset)}${deleted ? ", deleted" : ""}`);
}

function leftOut({ count, items }) {
  return count > items.length ? element("li", { class: "hint" }, `and ${formatCount(count - items.length)} more`) : null;
}

function producers({ serving }) {
  if (serving === null)
    return panel("Producers", element("p", { class: "empty-line" }, "Known once the stream is in use on this node."), "wide");
  const { count, items } = serving.producers;
  if (count === 0) return panel("Producers", element("p", { class: "empty-line" }, "No idempotent producer has written to it."), "wide");
  const rows = items.map(({ id, epoch, lastSeq, lastUsedMs }) => [id, epoch, lastSeq, formatInstant(lastUsedMs)]);
  const cut = count > items.length ? element("p", { class: "hint" }, `The first ${items.length} of ${formatCount(count)}.`) : "";
  return panel("Producers", [table("Producers", ["Id", "Epoch", "Last sequence", "Last append"], rows), cut], "wide");
}

function objects({ objects: { coveringCount, isComplete, items } }) {
  if (items.length === 0) {
    return panel(
      "Data objects",
      element("p", { class: "empty-line" }, "No object holds its records yet; the write-ahead log does."),
      "wide",
    );
  }
  const rows = items.map(({ objectId, level, startOffset, endOffset, bytes }) => [
    String(objectId),
    String(level),
    startOffset === null
      ? "tail state only"
      : `${formatCount(startOffset)} to ${endOffset === null ? "further objects" : formatCount(endOffset)}`,
    formatBytes(bytes),
  ]);
  const cut = isComplete ? "" : element("p", { class: "hint" }, `The newest of ${formatCount(coveringCount)} that may hold it.`);
  return panel("Data objects", [table("Data objects", ["Object", "Level", "Offsets", "Size of the object"], rows), cut], "wide");
}

function panel(title, content, width = null) {
  return element("section", { class: width === null ? "panel" : `panel ${width}` }, element("h2", {}, title), content);
}

function facts(rows) {
  return element(
    "dl",
    { class: "facts" },
    rows.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value))),
  );
}

function table(label, columns, rows) {
  const cell = (value, index) => element("td", { class: index === 0 ? "mono wrap" : "number" }, value);
  return element(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": label },
    element(
      "table",
      {},
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          columns.map((column) => element("th", { scope: "col" }, column)),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map((cells) => element("tr", {}, cells.map(cell))),
      ),
    ),
  );
}
