/**
 * The streams, in byte order of their names, a page at a time: the server lists from a prefix and a cursor, so a
 * million names cost as little as ten. The prefix and the cursor are in the address; the way back from a page
 * is kept with it in the tab's history.
 */
import { openCreateDialog } from "../create-dialog.js";
import { element, renderWhenChanged, setText } from "../dom.js";
import { formatCount, formatLifetime, NOTHING } from "../format.js";
import { wordsOf } from "../requests.js";
import { streamHref, streamsHref } from "../routes.js";
import { listStreams } from "../streams-api.js";
import { makeCurlHelp } from "./curl-help.js";

const PAGE_NAMES = 100;
const TYPING_MS = 200;
/** Cursors on the way back; whoever went further begins anew. */
const TRAIL_MAX = 200;
const REFRESH_MS = 10_000;

export function showStreams(root, route, { feed, signal, navigate }) {
  const search = element("input", {
    id: "search",
    type: "search",
    class: "mono",
    placeholder: "/orders/",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-describedby": "search-hint",
  });
  const create = element(
    "button",
    { type: "button", class: "primary", onclick: () => openCreateDialog(current.prefix, navigate) },
    "Create stream",
  );
  const crumbs = element("nav", { class: "crumbs", "aria-label": "Prefix" });
  const body = element("tbody");
  const status = element("p", { class: "list-status", role: "status" });
  const empty = element("div", { class: "empty", hidden: true });
  const pager = makePager();
  const table = element(
    "table",
    { class: "streams-table" },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        ["Name", "Content type", "Records", "Lifetime", "State"].map((column) => element("th", { scope: "col" }, column)),
      ),
    ),
    body,
  );
  const panel = element("div", { class: "panel table-panel" }, table, empty);
  root.append(
    element("div", { class: "page-head with-action" }, element("h1", { tabindex: "-1" }, "Streams"), create),
    element(
      "div",
      { class: "search-row" },
      element("label", { for: "search" }, "Names that begin with"),
      search,
      element("span", { id: "search-hint", class: "hint" }, "Press ", element("kbd", {}, "/"), " to search"),
    ),
    crumbs,
    panel,
    element("div", { class: "list-foot" }, status, pager.node),
  );

  let current = route;
  let asked = new AbortController();
  let typing = null;
  let timer = null;

  const load = async () => {
    asked.abort();
    clearTimeout(timer);
    const request = new AbortController();
    asked = request;
    panel.dataset.loading = "true";
    try {
      const page = await listStreams({ ...current, limit: PAGE_NAMES, signal: request.signal });
      if (request.signal.aborted) return;
      showPage(page);
    } catch (error) {
      if (request.signal.aborted) return;
      status.dataset.state = "bad";
      setText(status, `The list could not be read: ${wordsOf(error)}`);
    }
    delete panel.dataset.loading;
    if (!document.hidden) timer = setTimeout(load, REFRESH_MS);
  };

  const showPage = ({ items, next }) => {
    renderWhenChanged(body, items, () => items.map(streamRow));
    const isEmpty = items.length === 0;
    table.hidden = isEmpty;
    empty.hidden = !isEmpty;
    if (isEmpty) renderWhenChanged(empty, [current, feed.cluster?.advertisedAddress], () => emptyState(current, feed, navigate));
    delete status.dataset.state;
    setText(status, isEmpty ? "" : listWords(items, current, next));
    pager.show({ current, next: next ?? null, trail: trailNow(), navigate });
  };

  const update = (newRoute) => {
    current = newRoute;
    if (document.activeElement !== search) search.value = current.prefix;
    renderWhenChanged(crumbs, current.prefix, () => crumbLinks(current.prefix));
    void load();
  };

  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => navigate(streamsHref({ prefix: asPrefix(search.value) }), { replace: true }), TYPING_MS);
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : load()), { signal });
  signal.addEventListener("abort", () => {
    asked.abort();
    clearTimeout(timer);
    clearTimeout(typing);
  });
  // The addresses in the examples are known once the node has said them.
  feed.listenToAll(() => {
    if (!empty.hidden) renderWhenChanged(empty, [current, feed.cluster?.advertisedAddress], () => emptyState(current, feed, navigate));
  }, signal);
  search.value = route.prefix;
  update(route);
  return { title: "Streams", update };
}

/** All names begin with a slash; people leave it out. */
function asPrefix(text) {
  const trimmed = text.trim();
  return trimmed === "" || trimmed.startsWith("/") ? trimmed : `/${trimmed}`;
}

function streamRow(item) {
  const { name, content_type: contentType, closed, ttl, expires_at: expiresAt, start_seq: start, next_seq: next } = item;
  const records = start === undefined || next === undefined ? NOTHING : formatCount(next - start);
  const lifetime =
    ttl !== undefined ? `${formatLifetime(ttl)} after last use` : expiresAt !== undefined ? `until ${expiresAt}` : "unlimited";
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, element("a", { class: "stream-name mono", href: streamHref(name) }, name)),
    element("td", { class: "mono", "data-cell": "type" }, contentType),
    element(
      "td",
      {
        class: "number",
        "data-cell": records === NOTHING ? "unknown" : "records",
        title: records === NOTHING ? "known once the stream is used" : null,
      },
      records,
    ),
    element("td", { "data-cell": lifetime === "unlimited" ? "unlimited" : "lifetime" }, lifetime),
    element(
      "td",
      { "data-cell": "state" },
      element("span", { class: "tag", "data-state": closed ? "quiet" : "good" }, closed ? "closed" : "open"),
    ),
  );
}

/** `/a/b` leads back by `/` and `/a/`. */
function crumbLinks(prefix) {
  const parts = prefix.split("/").slice(1, -1);
  if (prefix === "" || prefix === "/") return [];
  const links = [element("a", { href: streamsHref() }, "All")];
  for (const [index, part] of parts.entries()) {
    const upTo = `/${parts.slice(0, index + 1).join("/")}/`;
    links.push(
      element("span", { "aria-hidden": "true" }, "/"),
      element("a", { href: streamsHref({ prefix: upTo }) }, part === "" ? "(empty)" : part),
    );
  }
  return links;
}

function listWords(items, { prefix, cursor }, next) {
  const isWhole = cursor === "" && next === undefined;
  const count = isWhole ? formatCount(items.length) : `${formatCount(items.length)} on this page`;
  return prefix === "" ? `Streams: ${count}` : `Streams that begin with ${prefix}: ${count}`;
}

function trailNow() {
  return Array.isArray(history.state?.trail) ? history.state.trail : [];
}

function makePager() {
  const first = element("button", { type: "button" }, "First");
  const previous = element("button", { type: "button" }, "Previous");
  const following = element("button", { type: "button" }, "Next");
  const node = element("div", { class: "pager" }, first, previous, following);
  const show = ({ current: { prefix, cursor }, next, trail, navigate }) => {
    const go = (to, newTrail) => {
      navigate(streamsHref({ prefix, cursor: to }), { state: { trail: newTrail } });
      window.scrollTo(0, 0);
    };
    first.disabled = cursor === "";
    previous.disabled = trail.length === 0;
    following.disabled = next === null;
    first.onclick = () => go("", []);
    previous.onclick = () => go(trail.at(-1), trail.slice(0, -1));
    following.onclick = () => go(next, [...trail, cursor].slice(-TRAIL_MAX));
  };
  return { node, show };
}

function emptyState({ prefix, cursor }, feed, navigate) {
  const create = element("button", { type: "button", onclick: () => openCreateDialog(prefix, navigate) }, "Create one here");
  if (cursor !== "") {
    return [
      element("h2", {}, "Nothing behind this page"),
      element("p", {}, "The streams that stood here are gone."),
      element("a", { href: streamsHref({ prefix }) }, "First page"),
    ];
  }
  if (prefix !== "" && prefix !== "/") {
    return [
      element("h2", {}, "No stream begins with ", element("code", {}, prefix)),
      element("p", {}, "Names are case-sensitive and begin with a slash."),
      create,
    ];
  }
  return [
    element("h2", {}, "No streams yet"),
    element("p", {}, "A stream is an append-only sequence of records at a URL. Make the first one:"),
    makeCurlHelp(feed),
    create,
  ];
}
