/** Appends a record, or one a line. JSON streams get JSON: the server takes what it is given, so this is checked here. */
import { showToast } from "../dialogs.js";
import { choiceRow, element, field, setText } from "../dom.js";
import { formatCount, formatNumberOf } from "../format.js";
import { isJsonType } from "../record-body.js";
import { Unreachable, wordsOf } from "../requests.js";
import { streamHref } from "../routes.js";
import { appendRecords } from "../streams-api.js";

const LINES_MAX = 10_000;

const WAYS = [
  ["one", "One record"],
  ["lines", "One a line"],
  ["base64", "Base64"],
];

export async function showAppendView(place, { name, stream, signal }) {
  const head = await stream.headOnceKnown();
  if (signal.aborted) return;
  const body = element("textarea", { class: "mono", rows: "8", spellcheck: "false" });
  const key = element("input", { type: "text", class: "mono", autocomplete: "off", spellcheck: "false" });
  const button = element("button", { type: "submit", class: "primary" }, "Append");
  const problem = element("p", { class: "form-problem", role: "alert" });
  const done = element("p", { class: "list-status", role: "status" });
  const note = element("p", { class: "hint" });
  let way = "one";
  let isSending = false;
  const form = element(
    "form",
    { class: "panel form-panel" },
    choiceRow("What to append", WAYS, way, (chosen) => {
      way = chosen;
      judge();
    }),
    field("Body", body),
    note,
    field("Key (optional)", key, "Travels with each record; the server does not interpret it"),
    problem,
    element("div", { class: "form-actions" }, button, done),
  );
  place.append(form);
  const isJson = isJsonType(head.contentType);
  const judge = () => {
    const isClosed = stream.head.isClosed;
    button.disabled = isClosed || isSending;
    setText(note, isClosed ? "The stream is closed: nothing can be appended." : wayNote(way, isJson, head.contentType));
  };
  stream.listen(judge, signal);
  judge();

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    setText(problem, "");
    setText(done, "");
    const { records, words } = makeRecords({ text: body.value, key: key.value, way, isJson });
    if (records === null) {
      setText(problem, words);
      body.focus();
      return;
    }
    isSending = true;
    judge();
    try {
      const { from, next } = await appendRecords(name, records);
      done.replaceChildren(
        `${formatNumberOf(next - from, "record")} durable at `,
        element("a", { href: streamHref(name, { from }) }, `offset ${formatCount(from)}`),
      );
      showToast(`Appended ${formatNumberOf(next - from, "record")} to ${name}`);
      body.value = "";
      await stream.refreshAll();
    } catch (error) {
      setText(
        problem,
        error instanceof Unreachable
          ? `${error.message}: look at the records before you append again, it may have been stored`
          : wordsOf(error),
      );
    }
    isSending = false;
    judge();
  });
}

function wayNote(way, isJson, contentType) {
  if (way === "base64") return "Standard base64 with padding; the bytes become one record.";
  if (isJson)
    return way === "lines"
      ? "This is a JSON stream: each line must be one JSON value."
      : "This is a JSON stream: the body must be one JSON value.";
  return way === "lines"
    ? "Each line becomes a record; empty lines are left out."
    : `The text becomes one record of ${contentType}, in UTF-8.`;
}

/** The records to send, or the words that say why there are none. */
function makeRecords({ text, key, way, isJson }) {
  const common = key === "" ? {} : { key };
  if (way === "base64") {
    const bytes = text.replace(/\s+/g, "");
    const isBase64 = bytes.length > 0 && bytes.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(bytes);
    return isBase64 ? { records: [{ ...common, body_b64: bytes }] } : { records: null, words: "This is not base64 with padding." };
  }
  const bodies = way === "lines" ? text.split(/\r?\n/).filter((line) => line !== "") : [text];
  if (bodies.length === 0 || bodies[0] === "") return { records: null, words: "There is nothing to append: write a body." };
  if (bodies.length > LINES_MAX) return { records: null, words: `${bodies.length} lines; at most ${LINES_MAX} records go at once.` };
  const wrong = isJson ? bodies.findIndex((body) => !isJsonText(body)) : -1;
  if (wrong >= 0)
    return { records: null, words: `${way === "lines" ? `Line ${wrong + 1}` : "The body"} is not JSON, and this is a JSON stream.` };
  return { records: bodies.map((body) => ({ ...common, body })) };
}

function isJsonText(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
