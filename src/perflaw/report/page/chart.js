// Charts as SVG: an element holds its traces as `data` and its axes, shapes and words as `layout`; `draw` shows them.
// Values of log axes are as they are in traces and shapes, and exponents of ten in ranges and annotations.

const DASHES = { dash: "7 5", dot: "2 3", dashdot: "7 4 2 4", longdash: "11 5", longdashdot: "11 4 2 4" };
const PREFIXES = [[1e24, ""], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const NEAR = 24; // px from which a mark is asked about
const LINE = 15; // px of a line of text

function drawChart(target, data, layout) {
  const box = typeof target === "string" ? document.getElementById(target) : target;
  Object.assign(box, { data, layout });
  stack(data);
  for (const name of ["x", "y"]) {
    const one = layout[`${name}axis`], [low, high] = one.range ?? [];
    if (!Number.isFinite(low) || !Number.isFinite(high) || low === high) one.range = rangeOfTraces(data, one, name);
  }
  box.home = [[...layout.xaxis.range], [...layout.yaxis.range]];
  box.classList.add("svg-chart");
  box.hiddenGroups ??= new Set();
  box.dragging ??= "zoom";
  if (!box.watcher) {
    box.watcher = new ResizeObserver(() => box.clientWidth !== box.drawnWidth && paint(box));
    box.watcher.observe(box);
  }
  paint(box);
}

// Values of layers that stand on each other: each begins where the one before it ends.
function stack(data) {
  let below = null;
  for (const trace of data.filter((one) => one.stackgroup)) {
    trace.bottom = below ?? trace.y.map(() => 0);
    trace.top = trace.y.map((value, i) => value + trace.bottom[i]);
    below = trace.top;
  }
}

function rangeOfTraces(data, { type, rangemode }, name) {
  const to = type === "log" ? Math.log10 : (value) => value;
  const values = data.flatMap((trace) => (name === "y" && trace.top) || trace[name]).filter((value) => value != null && Number.isFinite(to(value))).map(to);
  if (!values.length) return [0, 1];
  const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  const pad = name === "x" && data.every((trace) => trace.mode === "lines") ? 0 : 0.05 * (high - low);
  if (low === high) return [low - (Math.abs(low) * 0.1 || 1), high + (Math.abs(high) * 0.1 || 1)];
  return [rangemode === "tozero" ? 0 : low - pad, high + pad];
}

// The drawing itself, from what the box holds.
function paint(box) {
  const { layout } = box;
  const width = (box.drawnWidth = box.clientWidth) || 640;
  const legend = layout.showlegend ? legendOf(box) : null;
  const height = layout.height;
  const ticks = { y: ticksOf(layout.yaxis, Math.max(2, height / 60)) };
  const margin = { l: Math.max(64, 30 + 7 * Math.max(0, ...ticks.y.map(({ text }) => text.length))), r: 14, t: legend ? 8 : 24, b: 40 };
  const frame = { left: margin.l, top: margin.t, right: Math.max(margin.l + 60, width - margin.r), bottom: height - margin.b };
  ticks.x = ticksOf(layout.xaxis, Math.max(2, (frame.right - frame.left) / 80));
  const at = { x: placeOn(layout.xaxis, frame.left, frame.right), y: placeOn(layout.yaxis, frame.bottom, frame.top) };
  const clip = `${box.id || "chart"}-frame`;
  const shown = box.data.filter((trace) => !box.hiddenGroups.has(groupOf(trace)));
  const marks = shape("g", { "clip-path": `url(#${clip})` }, ...shapesOf(layout, at, frame, true),
    ...shown.map((trace, i) => traceShapes(trace, shown[i - 1], at, frame)).flat(), ...shapesOf(layout, at, frame, false));
  const words = `${layout.yaxis.title.text} by ${layout.xaxis.title.text}`;
  const svg = shape("svg", { class: "main-svg", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words,
    "font-family": layout.font.family, "font-size": 12, fill: layout.font.color },
  shape("defs", {}, shape("clipPath", { id: clip }, shape("rect", { x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top }))),
  ...frameShapes(layout, ticks, at, frame, height), marks, ...annotationShapes(layout, at, frame));
  const told = element("div", { class: "chart-told", role: "status" });
  box.replaceChildren(...[legend, svg, buttonsOf(box, svg), told].filter(Boolean));
  listen(box, svg, { at, frame, shown, told });
}

// A value's place on an axis, in px, and back.
function placeOn({ type, range: [low, high] }, from, to) {
  const log = type === "log";
  const place = (value) => from + (((log ? Math.log10(value) : value) - low) / (high - low)) * (to - from);
  place.exponent = (value) => from + ((value - low) / (high - low)) * (to - from);
  place.back = (px) => low + ((px - from) / (to - from)) * (high - low);
  return place;
}

function ticksOf(axis, most) {
  const [low, high] = axis.range;
  if (axis.type === "log" && high - low > 0.8) {
    const step = Math.max(1, Math.ceil((high - low) / most));
    const parts = high - low < most / 3 ? [1, 2, 5] : [1];
    const found = [];
    for (let power = Math.floor(low); power <= high; power += step) for (const part of parts) found.push(part * 10 ** power);
    return found.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high).map((value) => ({ value, text: tickText(value, axis) }));
  }
  const [from, to] = axis.type === "log" ? [10 ** low, 10 ** high] : [low, high];
  const rough = (to - from) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((part) => part * power >= rough) ?? 10);
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.max(0, Math.floor(to / step + 1e-9) - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)))
    .map((value) => ({ value, text: tickText(value, axis) }));
}

function tickText(value, { tickformat, exponentformat, minexponent = 3, ticksuffix = "" }) {
  if (tickformat === ".0%") return `${Math.round(value * 100)}%`;
  if (exponentformat !== "SI" || (Math.abs(value) < 1 && minexponent > 0)) return `${Number(value.toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 6 })}${ticksuffix}`;
  return prefixed(value, 6) + ticksuffix;
}

// A number with so many digits and a prefix: 1.5k, 20µ.
function prefixed(value, digits) {
  if (!value || !Number.isFinite(value)) return String(value);
  const rounded = Number(value.toPrecision(digits)), size = Math.abs(rounded);
  const [unit, name] = PREFIXES.find(([one]) => size >= one * 0.9999999) ?? PREFIXES.at(-1);
  if (size >= 1e15 || size < 1e-10) return rounded.toExponential().replace("e+", "e");
  return `${Number((rounded / unit).toPrecision(digits))}${name}`;
}

// "%{y:.3~s} at %{x}" with the values of a point.
function filledIn(template, values) {
  return template.replace(/<extra><\/extra>/, "").split("<br>").map((line) => line.replace(/%\{(\w+)(?::\.(\d)~?([sgf%]))?\}/g, (_, name, digits, kind) => {
    const value = values[name];
    if (kind === "s") return prefixed(value, Number(digits));
    if (kind === "g") return String(Number(value.toPrecision(Number(digits))));
    if (kind === "%") return `${(value * 100).toFixed(Number(digits))}%`;
    return kind === "f" ? value.toFixed(Number(digits)) : String(value ?? "");
  }));
}

// Grid, ticks and titles.
function frameShapes(layout, ticks, at, { left, right, top, bottom }, height) {
  const { gridcolor, linecolor } = layout.xaxis;
  const text = (attributes, words) => shape("text", attributes, words);
  const middle = (top + bottom) / 2;
  return [
    ...ticks.x.flatMap(({ value, text: words }) => [shape("path", { d: `M${at.x(value)} ${top}V${bottom}`, stroke: gridcolor }),
      text({ class: "xtick", x: at.x(value), y: bottom + LINE, "text-anchor": "middle" }, words)]),
    ...ticks.y.flatMap(({ value, text: words }) => [shape("path", { d: `M${left} ${at.y(value)}H${right}`, stroke: gridcolor }),
      text({ class: "ytick", x: left - 6, y: at.y(value) + 4, "text-anchor": "end" }, words)]),
    shape("path", { d: `M${left} ${top}V${bottom}H${right}`, stroke: linecolor, fill: "none" }),
    text({ class: "xtitle", x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, layout.xaxis.title.text),
    text({ class: "ytitle", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, layout.yaxis.title.text),
  ];
}

// Rectangles and lines; "paper" stands for the frame, from 0 to 1.
function shapesOf(layout, at, frame, below) {
  // What a log axis cannot show lies beyond its lower end.
  const held = (px, low, otherwise) => (Number.isNaN(px) ? otherwise : Math.max(low - 9e4, Math.min(low + 9e4, px)));
  const across = (one, value) => (one.xref === "paper" ? frame.left + value * (frame.right - frame.left) : held(at.x(value), frame.left, frame.left));
  const upright = (one, value) => (one.yref === "paper" ? frame.bottom - value * (frame.bottom - frame.top) : held(at.y(value), frame.top, frame.bottom));
  return (layout.shapes ?? []).filter((one) => (one.layer === "below") === below).map((one) => {
    const [x0, x1, y0, y1] = [across(one, one.x0), across(one, one.x1), upright(one, one.y0), upright(one, one.y1)];
    const stroke = { stroke: one.line?.color ?? "none", "stroke-width": one.line?.width ?? 0, "stroke-dasharray": DASHES[one.line?.dash] ?? "none" };
    if (one.type === "line") return shape("path", { d: `M${x0} ${y0}L${x1} ${y1}`, ...stroke });
    return shape("rect", { x: Math.min(x0, x1), y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0), fill: one.fillcolor ?? "none", ...stroke });
  });
}

function annotationShapes(layout, at, frame) {
  const anchors = { left: "start", right: "end", center: "middle" };
  return (layout.annotations ?? []).map((one) => {
    const x = one.xref === "paper" ? frame.left + one.x * (frame.right - frame.left) : at.x.exponent(one.x);
    const y = one.yref === "paper" ? frame.bottom - one.y * (frame.bottom - frame.top) : at.y.exponent(one.y);
    const size = one.font?.size ?? 11;
    if (!Number.isFinite(x) || !Number.isFinite(y)) return null;
    const leaves = one.xanchor === "left" && x + one.text.length * size * 0.55 > frame.right; // it would leave the frame
    if (leaves) return shape("text", { x: frame.right - 2, y: one.yanchor === "top" ? y + size : y - 3, "text-anchor": "end", "font-size": size, fill: one.font?.color }, one.text);
    return shape("text", { x, y: one.yanchor === "top" ? y + size : y - 3, "text-anchor": anchors[one.xanchor] ?? "middle", "font-size": size, fill: one.font?.color }, one.text);
  });
}

function traceShapes(trace, before, at, frame) {
  const points = placesOf(trace, at);
  if (trace.mode === "lines") return lineShapes(trace, points, before && placesOf(before, at), frame, at);
  return [...errorShapes(trace, points, at), ...markerShapes(trace, points)];
}

// Places of a trace's points, in px; null where a point has none.
const placesOf = (trace, at) => (trace.top ?? trace.y).map((y, i) => {
  const place = y == null || trace.x[i] == null ? [NaN] : [at.x(trace.x[i]), at.y(y)];
  return place.every(Number.isFinite) ? place : null;
});

const pathThrough = (points) => points.map((point, i) => (point ? `${points[i - 1] ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}` : "")).join("");

function lineShapes(trace, points, before, frame, at) {
  const { color = "none", width = 2, dash } = trace.line ?? {};
  const opacity = trace.opacity ?? 1;
  const line = shape("path", { d: pathThrough(points), fill: "none", stroke: width ? color : "none", "stroke-width": width, "stroke-dasharray": DASHES[dash] ?? "none", opacity, "stroke-linejoin": "round" });
  const known = points.filter(Boolean);
  if (!(trace.fill || trace.stackgroup) || !known.length) return [line];
  const floor = Math.min(frame.bottom, Number.isFinite(at.y(0)) ? at.y(0) : frame.bottom);
  const base = trace.stackgroup ? trace.bottom.map((y, i) => [at.x(trace.x[i]), at.y(y)]).filter((place) => place.every(Number.isFinite)) : trace.fill === "tonexty" && before ? before.filter(Boolean) : [[known[0][0], floor], [known.at(-1)[0], floor]];
  const area = pathThrough([...known, ...[...base].reverse()].map(([x, y]) => [x, Math.max(-9e4, Math.min(9e4, y))]));
  return [shape("path", { d: `${area}Z`, fill: trace.fillcolor ?? color, stroke: "none", opacity }), line];
}

function errorShapes({ x, y, error_y: error }, points, at) {
  if (!error) return [];
  return points.flatMap((point, i) => {
    if (!point) return [];
    const ends = [y[i] + error.array[i], y[i] - error.arrayminus[i]].map(at.y).map((place) => (Number.isFinite(place) ? Math.min(9e4, place) : 9e4));
    return [shape("path", { d: `M${point[0]} ${ends[0]}V${ends[1]}M${point[0] - 4} ${ends[0]}h8M${point[0] - 4} ${ends[1]}h8`, stroke: error.color, "stroke-width": 2, fill: "none" })];
  });
}

// Marks of one colour and opacity are one path, so that thousands of points are drawn at once.
function markerShapes({ marker = {} }, points) {
  const radius = (marker.size ?? 6) / 2 + 0.5;
  const open = String(marker.symbol ?? "").endsWith("-open");
  const paths = new Map();
  points.forEach((point, i) => {
    if (!point) return;
    const raw = Array.isArray(marker.color) ? gradient((marker.color[i] - marker.cmin) / (marker.cmax - marker.cmin || 1)) : marker.color;
    const key = `${raw} ${Array.isArray(marker.opacity) ? marker.opacity[i] : marker.opacity ?? 1}`;
    paths.set(key, (paths.get(key) ?? "") + markAt(marker.symbol, point, radius));
  });
  return [...paths].map(([key, d]) => {
    const cut = key.lastIndexOf(" "), raw = key.slice(0, cut), opacity = key.slice(cut + 1);
    const stroke = open || marker.symbol === "cross" ? raw : marker.line?.color ?? "none";
    return shape("path", { class: "points", d, opacity, fill: open ? "none" : raw, stroke, "stroke-width": marker.line?.width ?? 1.5 });
  });
}

const CORNERS = { square: [4, 45], diamond: [4, 0], "triangle-up": [3, 0], "triangle-down": [3, 180], pentagon: [5, 0], hexagon: [6, 0] };

function markAt(symbol = "circle", [x, y], r) {
  const name = symbol.replace("-open", "").replace("-thin", "");
  if (name === "x") return `M${x - r} ${y - r * 0.55}l${r * 0.45} ${-r * 0.45}l${r * 0.55} ${r * 0.55}l${r * 0.55} ${-r * 0.55}l${r * 0.45} ${r * 0.45}l${-r * 0.55} ${r * 0.55}l${r * 0.55} ${r * 0.55}l${-r * 0.45} ${r * 0.45}l${-r * 0.55} ${-r * 0.55}l${-r * 0.55} ${r * 0.55}l${-r * 0.45} ${-r * 0.45}l${r * 0.55} ${-r * 0.55}Z`;
  if (name === "cross") return `M${x - r} ${y}h${2 * r}M${x} ${y - r}v${2 * r}`;
  const star = name === "star";
  const [corners, turn] = star ? [10, 0] : CORNERS[name] ?? [0, 0];
  if (!corners) return `M${(x - r).toFixed(1)} ${y.toFixed(1)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  const ends = Array.from({ length: corners }, (_, i) => {
    const angle = ((turn + (360 * i) / corners - 90) * Math.PI) / 180, far = (star && i % 2 ? 0.5 : 1.25) * r;
    return `${(x + far * Math.cos(angle)).toFixed(1)} ${(y + far * Math.sin(angle)).toFixed(1)}`;
  });
  return `M${ends.join("L")}Z`;
}

// From blue over green to yellow, in steps that also differ in lightness.
const VIRIDIS = [[0x44, 0x5a, 0xb8], [0x2a, 0x8f, 0xa8], [0x35, 0xb7, 0x79], [0x90, 0xd7, 0x43], [0xf0, 0xd8, 0x25]];
function gradient(share) {
  const place = Math.max(0, Math.min(0.9999, share || 0)) * (VIRIDIS.length - 1), i = Math.floor(place);
  return `rgb(${VIRIDIS[i].map((low, k) => Math.round(low + (VIRIDIS[i + 1][k] - low) * (place - i))).join(",")})`;
}

const groupOf = (trace) => trace.legendgroup ?? trace.name;

// A button for each name; it hides and shows all traces of its group.
function legendOf(box) {
  const entries = box.data.filter((trace) => trace.showlegend !== false && trace.name).sort((a, b) => (a.legendrank ?? 1000) - (b.legendrank ?? 1000));
  return element("div", { class: "legend", role: "group", "aria-label": "Legend" }, entries.map((trace) => {
    const group = groupOf(trace);
    const press = () => {
      if (!box.hiddenGroups.delete(group)) box.hiddenGroups.add(group);
      paint(box);
    };
    return element("button", { type: "button", "aria-pressed": !box.hiddenGroups.has(group), onclick: press }, keyOf(trace), ` ${trace.name}`);
  }));
}

function keyOf(trace) {
  const fill = trace.fillcolor ?? "none", { color = "none", dash } = trace.line ?? {};
  const inner = trace.mode === "lines"
    ? [shape("rect", { width: 18, height: 10, fill }), shape("path", { d: "M0 5H18", stroke: color, "stroke-width": 2, "stroke-dasharray": DASHES[dash] ?? "none" })]
    : markerShapes({ marker: { ...trace.marker, size: 8, opacity: 1, color: Array.isArray(trace.marker.color) ? gradient(0.5) : trace.marker.color } }, [[9, 5]]);
  return shape("svg", { width: 18, height: 10, "aria-hidden": "true" }, ...inner);
}

function buttonsOf(box, svg) {
  const button = (title, text, press, pressed) => element("button", { type: "button", class: "modebar-btn", title, "data-title": title, "aria-label": title, "aria-pressed": pressed, onclick: press }, text);
  const mode = (name) => () => ((box.dragging = name), paint(box));
  return element("div", { class: "modebar" }, button("Download plot as a PNG", "PNG", () => keepPng(svg, box.id)),
    button("Download plot as an SVG", "SVG", () => keepFile(new Blob([svgText(svg)], { type: "image/svg+xml" }), `${box.id}.svg`)),
    button("Zoom", "□", mode("zoom"), box.dragging === "zoom"), button("Pan", "↔", mode("pan"), box.dragging === "pan"),
    button("Reset axes", "↺", () => setRanges(box, ...box.home.map((range) => [...range]))));
}

function svgText(svg) {
  const copy = svg.cloneNode(true);
  copy.prepend(shape("rect", { width: "100%", height: "100%", fill: colour("page") }));
  return new XMLSerializer().serializeToString(copy);
}

function keepFile(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function keepPng(svg, name) {
  const image = new Image(), canvas = element("canvas", { width: 2 * svg.clientWidth, height: 2 * svg.clientHeight });
  image.onload = () => {
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => keepFile(blob, `${name}.png`));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
}

function setRanges(box, x, y) {
  box.layout.xaxis.range = x;
  box.layout.yaxis.range = y;
  paint(box);
}

// Hovering tells of the nearest mark; dragging zooms or moves; a double click shows everything again.
function listen(box, svg, { at, frame, shown, told }) {
  const place = (event) => {
    const { left, top } = svg.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  let from = null, area = null;
  svg.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (!from) return tell(box, told, nearest(box, shown, at, x, y), x, y);
    area?.remove();
    if (box.dragging === "zoom") svg.append((area = shape("rect", { x: Math.min(x, from[0]), y: Math.min(y, from[1]), width: Math.abs(x - from[0]), height: Math.abs(y - from[1]), fill: colour("band") })));
  });
  svg.addEventListener("pointerleave", () => told.replaceChildren());
  svg.addEventListener("pointerdown", (event) => {
    from = place(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointerup", (event) => {
    const [x, y] = place(event), [x0, y0] = from ?? [x, y];
    from = null;
    area?.remove();
    if (Math.abs(x - x0) < 5 && Math.abs(y - y0) < 5) return clicked(box, at, x);
    const ends = box.dragging === "zoom" ? [[Math.min(x, x0), Math.max(x, x0)], [Math.max(y, y0), Math.min(y, y0)]]
      : [[frame.left - (x - x0), frame.right - (x - x0)], [frame.bottom - (y - y0), frame.top - (y - y0)]];
    setRanges(box, ends[0].map(at.x.back), ends[1].map(at.y.back));
  });
  svg.addEventListener("dblclick", () => setRanges(box, ...box.home.map((range) => [...range])));
}

function clicked(box, at, px) {
  const value = at.x.back(px);
  box.layout.clicked?.(box.layout.xaxis.type === "log" ? 10 ** value : value);
}

// Points to tell of: the nearest one, or one of each trace where the layout asks for all at a place.
function nearest(box, shown, at, x, y) {
  const together = box.layout.hovermode === "x unified";
  const found = [];
  for (const trace of shown.filter((one) => one.hovertemplate && one.hoverinfo !== "skip")) {
    let best = null;
    placesOf(trace, at).forEach((point, i) => {
      const distance = point && (together ? Math.abs(point[0] - x) : Math.hypot(point[0] - x, point[1] - y));
      if (point && distance <= (best?.distance ?? (together ? Infinity : NEAR))) best = { trace, i, distance };
    });
    if (best) found.push(best);
  }
  found.sort((a, b) => (together ? 0 : a.distance - b.distance));
  return together ? found : found.slice(0, 1);
}

function tell(box, told, found, x, y) {
  const lines = found.flatMap(({ trace, i }) => filledIn(trace.hovertemplate, { x: trace.x[i], y: trace.y[i], customdata: trace.customdata?.[i] ?? "" }));
  told.replaceChildren(...lines.map((line) => element("div", null, line)));
  const right = x > box.clientWidth / 2;
  Object.assign(told.style, { left: right ? "" : `${x + 14}px`, right: right ? `${box.clientWidth - x + 14}px` : "", top: `${y + 8 + (told.parentElement?.querySelector(".legend")?.offsetHeight ?? 0)}px` });
}
