/** An address that stands for nothing here. */
import { element } from "../dom.js";
import { streamsHref } from "../routes.js";

export function showUnknown(root, { path }) {
  root.append(
    element("h1", { tabindex: "-1" }, "There is nothing here"),
    element("p", {}, "The address ", element("code", {}, path), " names no page. If it names a stream, each % in it must begin an escape."),
    element("p", {}, element("a", { href: "#/" }, "Overview"), " · ", element("a", { href: streamsHref() }, "All streams")),
  );
  return { title: "Not found" };
}
