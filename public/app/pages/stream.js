/** One stream: its figures, and a view of its records, its live tail, an append, or what the node knows of it. */
import { openCreateDialog } from "../create-dialog.js";
import { element, renderWhenChanged, setState, setText } from "../dom.js";
import { formatCount, formatLifetime, NOTHING } from "../format.js";
import { Refused, wordsOf } from "../requests.js";
import { STREAM_VIEWS, streamHref, streamsHref } from "../routes.js";
import { headOfStream, inspectStream } from "../streams-api.js";
import { showAppendView } from "./append-view.js";
import { showDetailsView } from "./details-view.js";
import { showLiveView } from "./live-view.js";
import { showRecordsView } from "./records-view.js";
import { openCloseDialog, openDeleteDialog, openTrimDialog } from "./stream-acts.js";

const VIEWS = { records: showRecordsView, live: showLiveView, append: showAppendView, details: showDetailsView };
const LABELS = { records: "Records", live: "Live tail", append: "Append", details: "Details" };
/** What the node knows beside the protocol may cost a read of the store: it is asked less often. */
const INSPECT_EVERY = 3;

export function showStream(root, route, { feed, signal, navigate }) {
  const stream = new StreamFeed(route.name);
  const parts = makeParts(route.name, stream, navigate);
  root.append(parts.head, parts.missing, parts.present);

  let viewAbort = null;
  let shownKey = "";
  const update = ({ view, from }) => {
    const key = `${view} ${from}`;
    markTabs(parts.tabs, route.name, view);
    if (key === shownKey) return;
    shownKey = key;
    viewAbort?.abort();
    viewAbort = new AbortController();
    const place = element("div", { class: "view" });
    parts.view.replaceChildren(place);
    VIEWS[view](place, { name: route.name, from, stream, signal: viewAbort.signal, navigate });
  };
  signal.addEventListener("abort", () => {
    viewAbort?.abort();
    stream.stop();
  });
  stream.onChange = () => parts.show(stream);
  feed.listen(() => {
    if (feed.link === "live") void stream.refresh();
  }, signal);
  void stream.refresh();
  update(route);
  return { title: route.name, update };
}

/** What is known of the stream, read anew with each beat of the node's feed. */
class StreamFeed {
  /** Null until the first answer. */
  head = null;
  inspection = null;
  /** The node answered that there is no such stream. */
  isMissing = false;
  problem = null;
  onChange = () => {};
  #listeners = new Set();
  #rounds = 0;
  #isAsking = false;
  #abort = new AbortController();
  #known = Promise.withResolvers();

  constructor(name) {
    this.name = name;
  }

  /** The newest head, once there is one. */
  async headOnceKnown() {
    await this.#known.promise;
    return this.head;
  }

  listen(listener, signal) {
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#listeners.delete(listener), { once: true });
  }

  stop() {
    this.#abort.abort();
  }

  async refresh() {
    if (this.#isAsking || document.hidden || this.#abort.signal.aborted) return;
    this.#isAsking = true;
    const { signal } = this.#abort;
    try {
      const head = await headOfStream(this.name, signal);
      this.head = head;
      this.isMissing = false;
      this.problem = null;
      this.#known.resolve();
      if (this.#rounds++ % INSPECT_EVERY === 0) this.inspection = await inspectStream(this.name, signal);
    } catch (error) {
      if (signal.aborted) return;
      this.isMissing = error instanceof Refused && error.status === 404;
      this.problem = wordsOf(error);
      // One that is made anew under the name is another stream.
      if (this.isMissing) {
        this.inspection = null;
        this.#rounds = 0;
      }
    } finally {
      this.#isAsking = false;
    }
    if (signal.aborted) return;
    this.onChange();
    for (const listener of this.#listeners) listener();
  }

  /** Reads everything anew, after an act. */
  refreshAll() {
    this.#rounds = 0;
    return this.refresh();
  }
}

function makeParts(name, stream, navigate) {
  const tags = element("p", { class: "tags" });
  const tiles = element("div", { class: "tiles small-tiles stream-tiles" });
  const problem = element("p", { class: "form-problem", role: "alert" });
  const acts = {
    close: element("button", { type: "button", onclick: () => openCloseDialog(name, stream) }, "Close"),
    trim: element("button", { type: "button", onclick: () => openTrimDialog(name, stream) }, "Trim"),
    delete: element("button", { type: "button", class: "danger-quiet", onclick: () => openDeleteDialog(name, navigate) }, "Delete"),
  };
  const head = element(
    "div",
    { class: "page-head with-action" },
    element(
      "div",
      { class: "stream-title" },
      element("nav", { class: "crumbs", "aria-label": "Folder" }, folderLinks(name)),
      element("h1", { tabindex: "-1", class: "mono" }, name),
      tags,
    ),
    element("div", { class: "acts" }, Object.values(acts)),
  );
  const tabs = element("nav", { class: "tabs", "aria-label": "Views of this stream" });
  const view = element("div");
  const present = element("div", {}, tiles, problem, tabs, view);
  const missing = element(
    "div",
    { class: "panel empty", hidden: true },
    element("h2", {}, "There is no such stream"),
    element("p", {}, "It was never created, was deleted, or has expired."),
    element("button", { type: "button", onclick: () => openCreateDialog(name, navigate) }, "Create it"),
    element("a", { href: streamsHref() }, "All streams"),
  );
  const show = ({ head: known, inspection, isMissing, problem: words }) => {
    present.hidden = isMissing;
    missing.hidden = !isMissing;
    for (const act of Object.values(acts)) act.disabled = known === null || isMissing;
    acts.close.disabled ||= known?.isClosed === true;
    setText(problem, isMissing || words === null ? "" : words);
    if (known === null || isMissing) return;
    renderWhenChanged(tags, known, () => headTags(known));
    renderWhenChanged(tiles, [known, inspection], () => figures(known, inspection));
  };
  for (const act of Object.values(acts)) act.disabled = true;
  tiles.append(...figures(null, null));
  return { head, tabs, view, present, missing, show };
}

function folderLinks(name) {
  const parts = name.split("/").slice(1, -1);
  const links = [element("a", { href: streamsHref() }, "Streams")];
  for (const [index, part] of parts.entries()) {
    const prefix = `/${parts.slice(0, index + 1).join("/")}/`;
    links.push(
      element("span", { "aria-hidden": "true" }, "/"),
      element("a", { href: streamsHref({ prefix }) }, part === "" ? "(empty)" : part),
    );
  }
  return links;
}

function headTags({ isClosed, contentType, ttlSeconds, expiresAt }) {
  const lifetime =
    ttlSeconds !== null ? `expires ${formatLifetime(ttlSeconds)} after its last use` : expiresAt !== null ? `expires ${expiresAt}` : null;
  return [
    element("span", { class: "tag", "data-state": isClosed ? "quiet" : "good" }, isClosed ? "closed" : "open"),
    element("span", { class: "tag mono" }, contentType === "" ? "no content type" : contentType),
    lifetime === null ? null : element("span", { class: "tag", "data-state": "warn" }, lifetime),
  ].filter((tag) => tag !== null);
}

function figures(head, inspection) {
  const rows = [
    ["Records", head === null ? NOTHING : formatCount(head.nextOffset - head.startOffset)],
    ["First offset", head === null ? NOTHING : formatCount(head.startOffset)],
    ["Next offset", head === null ? NOTHING : formatCount(head.nextOffset)],
    ["Objects", formatCount(inspection?.objects.items.length)],
    ["Producers", formatCount(inspection?.serving?.producers.count)],
  ];
  return rows.map(([label, value]) =>
    element("div", { class: "panel tile" }, element("h2", {}, label), element("p", { class: "tile-value" }, value)),
  );
}

function markTabs(tabs, name, shown) {
  const links = STREAM_VIEWS.map((view) => {
    const link = element("a", { href: streamHref(name, view === "records" ? {} : { view }) }, LABELS[view]);
    if (view === shown) link.setAttribute("aria-current", "page");
    return link;
  });
  if (tabs.children.length === 0) tabs.append(...links);
  for (const [index, view] of STREAM_VIEWS.entries()) {
    if (view === shown) tabs.children[index].setAttribute("aria-current", "page");
    else tabs.children[index].removeAttribute("aria-current");
  }
  setState(tabs, shown);
}
