/** Starts the page: routes, the bar with the node's state, the theme, and keys that work everywhere. */
import { repaintCharts } from "./charts.js";
import { element } from "./dom.js";
import { NodeFeed } from "./node-feed.js";
import { showOverview } from "./pages/overview.js";
import { showStream } from "./pages/stream.js";
import { showStreams } from "./pages/streams.js";
import { showUnknown } from "./pages/unknown.js";
import { parseRoute, streamsHref } from "./routes.js";
import { wireStatusBar } from "./status-bar.js";
import { wireThemeToggle } from "./theme.js";

const PAGES = { overview: showOverview, streams: showStreams, stream: showStream, unknown: showUnknown };

const main = document.getElementById("main");
const feed = new NodeFeed();
/** The page that is shown: `{ key, abort, update }`. */
let current = null;
let isFirst = true;

wireThemeToggle(document.getElementById("theme-toggle"), repaintCharts);
wireStatusBar(feed);
feed.start();
window.addEventListener("popstate", showRoute);
window.addEventListener("hashchange", showRoute);
document.addEventListener("keydown", focusSearchOnSlash);
// The target of the skip link is no address of ours.
document.querySelector(".skip-link").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
showRoute();

/** Goes to an address of this page. `state` is kept with it in the history of the tab. */
function navigate(href, { replace = false, state = null } = {}) {
  if (replace) history.replaceState(state, "", href);
  else history.pushState(state, "", href);
  showRoute();
}

function showRoute() {
  const route = parseRoute(location.hash);
  const key = route.page === "stream" ? `stream ${route.name}` : route.page;
  markNavigation(route);
  if (current?.key === key) {
    current.update(route);
    return;
  }
  current?.abort.abort();
  // A dialog belongs to the page that opened it.
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  const abort = new AbortController();
  const root = element("div", { class: "page" });
  main.replaceChildren(root);
  const { title, update = () => {} } = PAGES[route.page](root, route, { feed, signal: abort.signal, navigate });
  current = { key, abort, update };
  document.title = title === "" ? "PicoMQ" : `${title} · PicoMQ`;
  window.scrollTo(0, 0);
  // A reader hears where it is; the first page leaves the focus to the browser.
  if (!isFirst) root.querySelector("h1")?.focus({ preventScroll: true });
  isFirst = false;
}

function markNavigation({ page }) {
  for (const link of document.querySelectorAll(".main-nav a")) {
    const isHere = link.dataset.page === (page === "stream" ? "streams" : page);
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** `/` is for the search, wherever one is; not while a person writes. */
function focusSearchOnSlash(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]") !== null) return;
  if (event.target instanceof Element && event.target.closest("input:not([type=radio],[type=checkbox]), textarea, select") !== null) return;
  event.preventDefault();
  if (current?.key !== "streams") navigate(streamsHref());
  const search = document.getElementById("search");
  search?.focus();
  search?.select();
}
