/** What the node knows of a stream beside its records: ownership, producers, forks, data objects. */
import { element, renderWhenChanged } from "../dom.js";
import { formatBytes, formatCount, formatInstant, formatNumberOf, NOTHING } from "../format.js";
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
  return [
    ["Stream id", text(known.streamId)],
    ["Owner", known.ownerNodeId === undefined ? NOTHING : `node ${known.ownerNodeId}${known.ownerLocal ? ", this one" : ""}`],
    ["State", text(known.state)],
    ["Epoch", text(known.epoch)],
    ["Durable tail", formatCount(known.durableTail)],
    ["In objects", `${formatCount(known.startOffset)} to ${formatCount(known.endOffset)}`],
    ["Expires", typeof known.expiresAtMs === "number" ? formatInstant(known.expiresAtMs) : "never"],
    [
      "Transfer",
      known.pendingTransfer === null ? "none" : `from node ${known.pendingTransfer.fromNode} to node ${known.pendingTransfer.toNode}`,
    ],
  ];
}

function forkTree(name, { forkSource = null, forks = null }) {
  const own = element("li", {}, element("strong", {}, name));
  const below = forks?.items ?? [];
  if (below.length > 0)
    own.append(
      element(
        "ul",
        {},
        below.map((fork) => forkItem(fork)),
      ),
    );
  if (forkSource === null) {
    const tree = element("ul", { class: "fork-tree" }, own);
    return below.length > 0 ? tree : element("div", {}, element("p", { class: "empty-line" }, "This stream is no fork and has none."));
  }
  return element("ul", { class: "fork-tree" }, element("li", {}, sourceLink(forkSource), element("ul", {}, own)));
}

function sourceLink({ name, offset }) {
  return element(
    "span",
    {},
    name === null ? "a deleted stream" : element("a", { href: streamHref(name) }, name),
    ` up to ${formatCount(offset)}`,
  );
}

function forkItem({ name, offset }) {
  return element("li", {}, element("a", { href: streamHref(name) }, name), ` from ${formatCount(offset)}`);
}

function producers({ producers: list }) {
  const rows = list?.items ?? [];
  const content =
    rows.length === 0
      ? element("p", { class: "empty-line" }, "No idempotent producer has written to it.")
      : table(
          ["Id", "Epoch", "Last sequence"],
          rows.map(({ id, epoch, seq }) => [id, String(epoch), String(seq)]),
        );
  return panel("Producers", content, "wide");
}

function objects({ objects: list }) {
  const rows = list?.items ?? [];
  if (rows.length === 0)
    return panel(
      "Data objects",
      element("p", { class: "empty-line" }, "Its records are in the write-ahead log only; an upload follows."),
      "wide",
    );
  const cut =
    list.count > rows.length
      ? element("p", { class: "hint" }, `The first ${formatNumberOf(rows.length, "object")} of ${formatCount(list.count)}.`)
      : null;
  return panel(
    "Data objects",
    [
      table(
        ["Object", "Level", "Size"],
        rows.map(({ id, level, bytes }) => [String(id), String(level), formatBytes(bytes)]),
      ),
      cut,
    ],
    "wide",
  );
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

function table(columns, rows) {
  return element(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": columns[0] },
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
        rows.map((cells) =>
          element(
            "tr",
            {},
            cells.map((cell, index) => element("td", { class: index === 0 ? "mono" : "number" }, cell)),
          ),
        ),
      ),
    ),
  );
}

function text(value) {
  return value === null || value === undefined ? NOTHING : String(value);
}
