/** Records as they come. The page keeps the last few hundred; what scrolls out is still in the stream. */
import { choiceRow, element, setState, setText } from "../dom.js";
import { formatCount, formatNumberOf } from "../format.js";
import { LiveTail } from "../live-tail.js";
import { BODY_MODES, modeFor } from "../record-body.js";
import { recordRow } from "../record-row.js";
import { streamHref } from "../routes.js";

const ROWS_MAX = 400;
/** Shown from before now, so that the view is not empty. */
const RECORDS_BEFORE = 20;
/** A reader at most this far from the end follows it. */
const NEAR_END_PX = 60;

const STATES = {
  connecting: ["quiet", "Connecting"],
  events: ["good", "Live"],
  polling: ["good", "Live, asking once a second: the few lasting connections of this browser are in use"],
  waiting: ["bad", "Interrupted, trying again"],
  paused: ["quiet", "Paused"],
  hidden: ["quiet", "Resting while hidden"],
  closed: ["quiet", "The stream is closed; this is its end"],
  gone: ["bad", "The stream is gone"],
};

export async function showLiveView(place, { name, stream, signal }) {
  const state = element("span", { class: "live-state", role: "status" });
  const toggle = element("button", { type: "button", disabled: true }, "Pause");
  const clear = element("button", { type: "button", onclick: () => list.replaceChildren() }, "Clear");
  const modes = element("div");
  const list = element("div", { class: "records" });
  const scroller = element(
    "div",
    { class: "live-scroller", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Live records" },
    list,
  );
  const count = element("p", { class: "list-status" }, "No record has come yet");
  place.append(
    element(
      "div",
      { class: "view-bar" },
      element("span", { class: "live-head" }, element("span", { class: "dot live-dot" }), state),
      modes,
      toggle,
      clear,
    ),
    element("div", { class: "panel table-panel" }, scroller),
    element("div", { class: "list-foot" }, count),
  );
  const showState = (key, words) => {
    const [kind, text] = STATES[key];
    setState(place, kind);
    setText(state, words === "" ? text : `${text}: ${words}`);
    place.dataset.live = key;
    toggle.textContent = key === "paused" ? "Go on" : "Pause";
    toggle.disabled = key === "closed" || key === "gone";
  };
  showState("connecting", "");

  const head = await stream.headOnceKnown();
  if (signal.aborted) return;
  let mode = modeFor(head.contentType);
  modes.replaceChildren(
    choiceRow("Show bodies as", BODY_MODES, mode, (chosen) => {
      mode = chosen;
      for (const row of list.querySelectorAll(".record")) row.showAs(chosen);
    }),
  );
  const rows = makeRows({ list, scroller, count, makeRow: (record) => recordRow(record, { name, mode, isLean: true }), signal });
  const tail = new LiveTail({
    name,
    from: Math.max(head.startOffset, head.nextOffset - RECORDS_BEFORE),
    onRecords: (records) => rows.add(records),
    onGap: (from, to) => rows.addGap(gapRow(name, from, to)),
    onState: showState,
    signal,
  });
  toggle.addEventListener("click", () => (place.dataset.live === "paused" ? tail.start() : tail.stop()));
  tail.start();
}

function gapRow(name, from, to) {
  const isNew = to < from;
  return element(
    "p",
    { class: "gap-row" },
    isNew ? "The stream was deleted and created anew; " : `Offsets ${formatCount(from)} to ${formatCount(to - 1)} were trimmed away; `,
    element("a", { href: streamHref(name, { from: to }) }, `it goes on at ${formatCount(to)}`),
  );
}

/** Adds rows once a frame, however fast records come, and keeps the last of them. */
function makeRows({ list, scroller, count, makeRow, signal }) {
  let waiting = [];
  let frame = 0;
  let total = 0;
  signal.addEventListener("abort", () => cancelAnimationFrame(frame));
  const flush = () => {
    frame = 0;
    const isFollowing = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END_PX;
    list.append(...waiting.map((item) => (item instanceof Node ? item : makeRow(item))));
    waiting = [];
    while (list.children.length > ROWS_MAX) list.firstElementChild.remove();
    if (isFollowing) scroller.scrollTop = scroller.scrollHeight;
    setText(count, `${formatNumberOf(total, "record")} since this view was opened; the last ${ROWS_MAX} stay`);
  };
  const push = (items) => {
    waiting = [...waiting, ...items].slice(-ROWS_MAX);
    if (frame === 0) frame = requestAnimationFrame(flush);
  };
  return {
    add(records) {
      total += records.length;
      push(records);
    },
    addGap: (row) => push([row]),
  };
}
