/** The form that creates a stream. */
import { openDialog, showToast } from "./dialogs.js";
import { element, field, freshId } from "./dom.js";
import { streamHref } from "./routes.js";
import { createStream } from "./streams-api.js";

const TYPES = ["application/json", "text/plain", "application/octet-stream", "application/x-ndjson"];
const UNITS = [
  ["1", "seconds"],
  ["60", "minutes"],
  ["3600", "hours"],
  ["86400", "days"],
];

export function openCreateDialog(prefix, navigate) {
  const name = element("input", {
    type: "text",
    class: "mono",
    required: true,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    placeholder: "/orders/eu",
  });
  name.value = prefix;
  const listId = freshId("types");
  const type = element("input", { type: "text", class: "mono", list: listId, autocomplete: "off", spellcheck: "false" });
  type.value = TYPES[0];
  const types = element(
    "datalist",
    { id: listId },
    TYPES.map((each) => element("option", { value: each })),
  );
  const ttl = element("input", { type: "number", min: "1", step: "1", inputmode: "numeric", placeholder: "unlimited" });
  const unit = element(
    "select",
    { "aria-label": "Unit of the lifetime" },
    UNITS.map(([seconds, label]) => element("option", { value: seconds }, label)),
  );
  const full = () => (name.value.startsWith("/") ? name.value : `/${name.value}`);
  openDialog({
    title: "Create a stream",
    content: [
      field("Name", name, "Begins with a slash; further slashes make folders"),
      field("Content type", type, "Of all its records; JSON streams are shown as JSON"),
      types,
      element(
        "div",
        { class: "field-pair" },
        field("Lifetime", ttl, "The stream goes away when it was neither read nor written for so long"),
        unit,
      ),
    ],
    submitLabel: "Create",
    isReady: () => full() !== "/" && ttl.validity.valid,
    submit: async () => {
      const ttlSeconds = ttl.value === "" ? "" : String(Number(ttl.value) * Number(unit.value));
      const isNew = await createStream({ name: full(), contentType: type.value.trim(), ttlSeconds });
      showToast(isNew ? `Created ${full()}` : `${full()} was there already, with these settings`);
      navigate(streamHref(full()));
    },
  });
  name.focus();
  name.setSelectionRange(name.value.length, name.value.length);
}
