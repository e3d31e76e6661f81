/** Records, a page at a time from any offset. Without one: the last page. */
import { choiceRow, element, field, setText } from "../dom.js";
import { formatCount, formatNumberOf } from "../format.js";
import { BODY_MODES, modeFor } from "../record-body.js";
import { recordRow } from "../record-row.js";
import { Refused, wordsOf } from "../requests.js";
import { parseOffset, streamHref } from "../routes.js";
import { readRecords } from "../streams-api.js";

const PAGE_RECORDS = 50;
const PAGE_BYTES = 1024 * 1024;

export async function showRecordsView(place, { name, from, stream, signal, navigate }) {
  const offset = element("input", { type: "text", inputmode: "numeric", class: "offset-input", autocomplete: "off" });
  const status = element("p", { class: "list-status", role: "status" }, "Reading…");
  const list = element("div", { class: "records" });
  const empty = element("div", { class: "empty", hidden: true });
  const expand = element("button", { type: "button", disabled: true }, "Expand all");
  const pager = makePager((to) => navigate(streamHref(name, { from: to })));
  const goForm = element("form", { class: "go-form" }, field("From offset", offset), element("button", { type: "submit" }, "Go"));
  let mode = "text";
  let page = null;
  let isAsking = false;
  let isRefused = false;

  const modes = element("div");
  place.append(
    element("div", { class: "view-bar" }, goForm, modes, expand),
    element("div", { class: "panel table-panel" }, list, empty),
    element("div", { class: "list-foot" }, status, pager.node),
  );
  goForm.addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = parseOffset(offset.value);
    if (wanted === null) setText(status, `"${offset.value}" is no offset: a whole number from 0`);
    else navigate(streamHref(name, { from: wanted }));
  });
  expand.addEventListener("click", () => {
    const isOpening = [...list.children].some((row) => !row.open);
    for (const row of list.children) row.open = isOpening;
    expand.textContent = isOpening ? "Collapse all" : "Expand all";
  });

  const head = await stream.headOnceKnown();
  if (signal.aborted) return;
  mode = modeFor(head.contentType);
  modes.replaceChildren(
    choiceRow("Show bodies as", BODY_MODES, mode, (chosen) => {
      mode = chosen;
      for (const row of list.children) row.showAs(chosen);
    }),
  );
  const start = from ?? Math.max(head.startOffset, head.nextOffset - PAGE_RECORDS);
  offset.value = String(start);

  const showPage = () => {
    list.replaceChildren(...page.records.map((record) => recordRow(record, { name, mode })));
    const isEmpty = page.records.length === 0;
    empty.hidden = !isEmpty;
    expand.disabled = isEmpty;
    if (isEmpty) empty.replaceChildren(...emptyWords(name, stream.head));
    showFoot();
  };
  const showFoot = () => {
    const { startOffset, nextOffset } = stream.head;
    const newer = nextOffset - page.next;
    const range = page.records.length === 0 ? "No records here" : `${formatCount(page.records[0].seq)} to ${formatCount(page.next - 1)}`;
    setText(status, newer > 0 ? `${range}; ${formatNumberOf(newer, "newer record")}` : `${range}, the end`);
    pager.show({ start, next: page.next, startOffset, nextOffset });
  };
  const load = async () => {
    isAsking = true;
    try {
      page = await readRecords({ name, from: start, count: PAGE_RECORDS, bytes: PAGE_BYTES, signal });
      delete status.dataset.state;
      showPage();
    } catch (error) {
      if (!signal.aborted) showProblem(error);
    }
    isAsking = false;
  };
  const showProblem = (error) => {
    status.dataset.state = "bad";
    setText(status, wordsOf(error));
    pager.show({ start, next: start, startOffset: stream.head.startOffset, nextOffset: stream.head.nextOffset });
    isRefused = error instanceof Refused;
    if (!isRefused) return;
    empty.hidden = false;
    empty.replaceChildren(element("h2", {}, "No records at this offset"), element("p", {}, error.message));
  };
  // A node that was away is asked again once it is back; a refusal stays.
  stream.listen(() => {
    if (page !== null) showFoot();
    else if (!isAsking && !isRefused && stream.problem === null) void load();
  }, signal);
  await load();
}

function emptyWords(name, { nextOffset, isClosed }) {
  if (nextOffset > 0)
    return [element("h2", {}, "No records here"), element("p", {}, "The stream ends at this offset, or was trimmed up to it.")];
  if (isClosed) return [element("h2", {}, "Empty and closed"), element("p", {}, "This stream was closed before anything was appended.")];
  return [
    element("h2", {}, "No records yet"),
    element("p", {}, "Append the first one, or watch for what comes."),
    element(
      "p",
      {},
      element("a", { href: streamHref(name, { view: "append" }) }, "Append a record"),
      " · ",
      element("a", { href: streamHref(name, { view: "live" }) }, "Live tail"),
    ),
  ];
}

function makePager(go) {
  const first = element("button", { type: "button" }, "First");
  const previous = element("button", { type: "button" }, "Previous");
  const following = element("button", { type: "button" }, "Next");
  const latest = element("button", { type: "button" }, "Latest");
  const node = element("div", { class: "pager" }, first, previous, following, latest);
  const show = ({ start, next, startOffset, nextOffset }) => {
    first.disabled = start <= startOffset;
    previous.disabled = start <= startOffset;
    following.disabled = next >= nextOffset;
    first.onclick = () => go(startOffset);
    previous.onclick = () => go(Math.max(startOffset, Math.min(start, nextOffset) - PAGE_RECORDS));
    following.onclick = () => go(next);
    latest.onclick = () => go(Math.max(startOffset, nextOffset - PAGE_RECORDS));
  };
  return { node, show };
}
