/** The first commands for an empty node, with its own address, to be copied. */
import { showToast } from "../dialogs.js";
import { element } from "../dom.js";

export function makeCurlHelp({ cluster }) {
  const url = `${cluster?.advertisedAddress ?? "http://127.0.0.1:4437"}/hello`;
  const lines = [
    `curl -X PUT -H 'content-type: application/json' ${url}`,
    `curl -X POST -H 'content-type: application/json' -d '{"hello":"world"}' ${url}`,
    `curl ${url}`,
  ];
  const code = element("pre", { class: "command", tabindex: "0" }, lines.join("\n"));
  const copy = element("button", { type: "button", onclick: () => copyText(lines.join("\n"), code) }, "Copy");
  return element("div", { class: "command-box" }, code, copy);
}

/** Where a page may not write the clipboard, the text is selected for the person to copy. */
async function copyText(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    showToast("Copied");
  } catch {
    getSelection()?.selectAllChildren(node);
    showToast("Selected; press Ctrl+C to copy");
  }
}
