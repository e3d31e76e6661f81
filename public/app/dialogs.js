/** Dialogs and short messages. Escape closes a dialog, and the focus goes back to where it was. */
import { element, field, freshId } from "./dom.js";
import { wordsOf } from "./requests.js";

const TOAST_MS = 6000;
const TOASTS_MAX = 4;

export function showToast(text) {
  const place = document.getElementById("toasts");
  const toast = element("p", { class: "toast" }, text);
  place.append(toast);
  while (place.children.length > TOASTS_MAX) place.firstElementChild.remove();
  setTimeout(() => toast.remove(), TOAST_MS);
}

/**
 * A form on top of the page. `submit` does the work and may throw: its words are shown and the form stays.
 * `isReady` says whether the button may be pressed.
 */
export function openDialog({ title, content, submitLabel, isDanger = false, isReady = () => true, submit }) {
  const titleId = freshId("title");
  const problem = element("p", { class: "form-problem", role: "alert" });
  const action = element("button", { type: "submit", class: isDanger ? "danger" : "primary" }, submitLabel);
  const cancel = element("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const form = element(
    "form",
    { method: "dialog" },
    element("h2", { id: titleId, class: "dialog-title" }, title),
    content,
    problem,
    element("div", { class: "dialog-actions" }, cancel, action),
  );
  const dialog = element("dialog", { "aria-labelledby": titleId }, form);
  let isSending = false;
  const judge = () => {
    action.disabled = isSending || !isReady();
  };
  form.addEventListener("input", judge);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (action.disabled) return;
    isSending = true;
    judge();
    problem.textContent = "";
    try {
      await submit();
      dialog.close();
    } catch (error) {
      problem.textContent = wordsOf(error);
      isSending = false;
      judge();
    }
  });
  // A click beside the box closes it; one inside has another target.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove(), { once: true });
  judge();
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A dialog whose button works only once the stream's name has been typed, letter for letter. */
export function confirmByName({ title, name, consequence, fields = [], submitLabel, isReady = () => true, submit }) {
  const typed = element("input", { type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", class: "mono" });
  const content = [
    element("p", {}, consequence),
    ...fields,
    element("p", { class: "name-to-type" }, element("code", {}, name)),
    field("Type the name of the stream to confirm", typed),
  ];
  return openDialog({ title, content, submitLabel, isDanger: true, isReady: () => typed.value === name && isReady(), submit });
}
