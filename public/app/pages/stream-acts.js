/** What cannot be taken back: close, trim and delete. Each wants the stream's name, typed. */
import { confirmByName, showToast } from "../dialogs.js";
import { element, field } from "../dom.js";
import { formatCount } from "../format.js";
import { parseOffset, streamsHref } from "../routes.js";
import { closeStream, deleteStream, trimStream } from "../streams-api.js";

export function openCloseDialog(name, stream) {
  confirmByName({
    title: "Close this stream",
    name,
    consequence: "Nothing can be appended to it any more. Its records stay readable. A closed stream is never opened again.",
    submitLabel: "Close for ever",
    submit: async () => {
      await closeStream(name);
      showToast(`Closed ${name}`);
      await stream.refreshAll();
    },
  });
}

export function openTrimDialog(name, stream) {
  const offset = element("input", { type: "text", inputmode: "numeric", autocomplete: "off" });
  offset.value = String(stream.head.startOffset);
  const { startOffset, nextOffset } = stream.head;
  confirmByName({
    title: "Trim this stream",
    name,
    consequence: "All records below an offset go away for ever.",
    fields: [
      field(
        "First offset to keep",
        offset,
        `From ${formatCount(startOffset)} to ${formatCount(nextOffset)}, the offset of the next record`,
      ),
    ],
    submitLabel: "Trim",
    isReady: () => parseOffset(offset.value) !== null,
    submit: async () => {
      const first = await trimStream(name, parseOffset(offset.value));
      showToast(`The first offset of ${name} is ${formatCount(first)}`);
      await stream.refreshAll();
    },
  });
}

export function openDeleteDialog(name, navigate) {
  confirmByName({
    title: "Delete this stream",
    name,
    consequence: "The stream and all its records go away for ever. Its name is free at once.",
    submitLabel: "Delete for ever",
    submit: async () => {
      await deleteStream(name);
      showToast(`Deleted ${name}`);
      navigate(streamsHref());
    },
  });
}
