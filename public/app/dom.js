/**
 * Building the page. Whatever comes from the server (names, records, content types, error texts) enters the
 * page as text nodes and attribute values made here, never as markup.
 */

/** Attributes that a browser would run or style by; handlers are functions, styles are classes. */
const REFUSED = /^(style|srcdoc|on.*)$/i;

/**
 * `element("button", { class: "primary", onclick: run }, "Run")`. A function under `on…` becomes a listener,
 * `true` an empty attribute; `false`, `null` and `undefined` leave it out. Children that are null or false are skipped.
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
    else setAttribute(node, name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function setAttribute(node, name, value) {
  if (REFUSED.test(name)) throw new Error(`attribute ${name} is never set`);
  // Links lead within this page or this listener; `javascript:` and other hosts cannot be reached.
  if (name === "href" && !/^(#|\/(?![\\/])|docs$)/.test(value)) throw new Error(`a link leads elsewhere: ${value}`);
  node.setAttribute(name, value);
}

/** Writes only what changed, so that a selection in unchanged text survives. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setState(node, state) {
  if (node.dataset.state !== state) node.dataset.state = state;
}

/** Makes the children anew when `value` is another one than before; true if it did. */
export function renderWhenChanged(node, value, makeChildren) {
  const key = JSON.stringify(value);
  if (node.renderedKey === key) return false;
  node.renderedKey = key;
  // A link that has the focus keeps it in its new form.
  const held = node.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  node.replaceChildren(...makeChildren());
  if (held !== null) node.querySelector(`a[href="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  return true;
}

let lastId = 0;

export function freshId(word) {
  lastId += 1;
  return `${word}-${lastId}`;
}

/** A labelled control; the hint is read along with it. */
export function field(label, control, hint = null) {
  control.id ||= freshId("field");
  const note = hint === null ? null : element("span", { class: "hint", id: `${control.id}-hint` }, hint);
  if (note !== null) control.setAttribute("aria-describedby", note.id);
  return element("div", { class: "field" }, element("label", { for: control.id }, label), control, note);
}

/** A row of choices of which one holds. `onChange` gets the value. */
export function choiceRow(legend, choices, chosen, onChange) {
  const group = freshId("choice");
  const options = choices.map(([value, label]) => {
    const input = element("input", { type: "radio", name: group, value, onchange: () => onChange(value) });
    input.checked = value === chosen;
    return element("label", {}, input, element("span", {}, label));
  });
  return element("fieldset", { class: "choices" }, element("legend", { class: "visually-hidden" }, legend), options);
}
