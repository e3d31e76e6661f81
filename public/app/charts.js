/** Charts of the last ten minutes, or of the time since the node started. Colours come from the style sheet, and follow a change of theme. */
import { element, setText } from "./dom.js";
import { NOTHING } from "./format.js";

/** Loaded before the modules are (`index.html`). */
const { uPlot } = globalThis;
const SPAN_SECONDS_MIN = 60;
const SPAN_SECONDS_MAX = 600;
const HEIGHT = 168;
const BINARY_STEPS = Array.from({ length: 44 }, (_, power) => 2 ** power);
const cursors = uPlot.sync("activity");
const shown = new Set();

/** Draws all charts anew, in the colours that hold now. */
export function repaintCharts() {
  for (const plot of shown) plot.redraw(false, true);
}

/**
 * A chart with its title and figures. `series`: `{ label, color, value(sample) }`, where the colour is the name of a CSS
 * variable and a value is null where there is none. `format` makes the figures; bytes
 * have steps that are powers of two (`isBinary`). Returns `{ node, show(samples, nowMs, startedAtMs) }`.
 */
export function makeChart({ title, series, format, isBinary = false, signal }) {
  const figures = series.map(({ label, color }) => {
    const figure = element("output", { class: "chart-figure" }, NOTHING);
    const swatch = element("span", { class: "swatch", "data-color": color, "aria-hidden": "true" });
    return { figure, node: element("span", { class: "chart-key" }, swatch, label, figure) };
  });
  const place = element("div", { class: "chart-canvas", role: "img", "aria-label": title });
  const node = element(
    "section",
    { class: "panel chart" },
    element(
      "div",
      { class: "chart-head" },
      element("h3", {}, title),
      element(
        "div",
        { class: "chart-keys" },
        figures.map((each) => each.node),
      ),
    ),
    place,
  );
  let data = null;
  const showFigures = (at) => {
    for (const [index, { figure }] of figures.entries()) {
      setText(figure, data === null || at < 0 ? NOTHING : format(data[index + 1][at]));
    }
  };
  let plot = null;
  const show = (samples, nowMs, startedAtMs) => {
    data = [samples.map(({ atMs }) => atMs / 1000), ...series.map(({ value }) => samples.map(value))];
    plot ??= openPlot(place, { series, format, isBinary, showFigures, last: () => data[0].length - 1, signal });
    plot.nowSeconds = nowMs / 1000;
    plot.spanSeconds = Math.min(SPAN_SECONDS_MAX, Math.max(SPAN_SECONDS_MIN, (nowMs - startedAtMs) / 1000));
    plot.setData(data);
    if (plot.cursor.idx === null || plot.cursor.left < 0) showFigures(data[0].length - 1);
    place.setAttribute("aria-label", `${title}: ${figures.map(({ node: key }) => key.textContent).join(", ")}`);
  };
  return { node, show };
}

function openPlot(place, { series, format, isBinary, showFigures, last, signal }) {
  const plot = new uPlot(
    {
      width: Math.max(place.clientWidth, 200),
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: cursors.key }, drag: { x: false, y: false }, points: { size: 7 } },
      padding: [8, 26, 0, 0],
      scales: {
        x: { range: (self) => [self.nowSeconds - self.spanSeconds, self.nowSeconds] },
        y: { range: (_self, _min, max) => [0, max === null || max <= 0 ? 1 : max * 1.12] },
      },
      axes: [
        axis({ size: 26, space: 70, values: (_self, ticks, _axis, _space, step) => ticks.map((at) => clockOf(at, step < 60)) }),
        axis({
          size: 62,
          space: 34,
          incrs: isBinary ? BINARY_STEPS : undefined,
          values: (_self, ticks) => ticks.map((value) => (value === 0 ? "0" : format(value))),
        }),
      ],
      series: [{}, ...series.map(({ color }) => line(color))],
      hooks: { setCursor: [(self) => showFigures(self.cursor.idx ?? last())] },
    },
    [[], ...series.map(() => [])],
    place,
  );
  shown.add(plot);
  const resizing = new ResizeObserver(() => {
    if (place.clientWidth > 0) plot.setSize({ width: place.clientWidth, height: HEIGHT });
  });
  resizing.observe(place);
  signal.addEventListener(
    "abort",
    () => {
      resizing.disconnect();
      shown.delete(plot);
      plot.destroy();
    },
    { once: true },
  );
  return plot;
}

function axis(options) {
  return {
    stroke: () => colorOf("--muted"),
    grid: { stroke: () => colorOf("--line-soft"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
    gap: 6,
    ...options,
  };
}

function line(color) {
  return { stroke: () => colorOf(color), fill: () => `${colorOf(color)}1f`, width: 1.5, points: { show: false } };
}

/** The value of a CSS variable as `#rrggbb`; the canvas does not know `light-dark()`. */
function colorOf(variable) {
  const probe = element("span", { class: "color-probe", "data-color": variable });
  document.body.append(probe);
  const [red = 0, green = 0, blue = 0] = getComputedStyle(probe).color.match(/\d+/g)?.map(Number) ?? [];
  probe.remove();
  return `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

function clockOf(seconds, withSeconds) {
  const time = new Date(seconds * 1000);
  const parts = [time.getHours(), time.getMinutes(), ...(withSeconds ? [time.getSeconds()] : [])];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}
