// Charts of a study: heat maps over two knobs (the paper's Figure 3), progress, and the front of several goals.

const CELL = { least: 26, most: 56, height: 30, left: 70, bottom: 34, top: 22 };
const MOST_ACROSS = 14, MOST_MAPS = 8;

// The settings along an axis: all where they are few, else those that were tried.
function settingsOf(knob, most) {
  if (knob.levels.length <= most) return knob.levels;
  const tried = knob.levels.filter(({ value }) => study.trials.some((trial) => trial.configuration[knob.name] === value));
  const some = tried.length >= 2 ? tried : knob.levels;
  if (some.length <= most) return some;
  return Array.from({ length: most }, (_, i) => some[Math.round((i * (some.length - 1)) / (most - 1))]);
}

function mapKnobs() {
  const known = study.knobs.filter((knob) => knob.levels.length > 1).map(({ name }) => name);
  const usual = study.surface ? [study.surface.x, study.surface.y, study.surface.facet] : [known[0], known[1], known[2] ?? ""];
  const asked = ["x", "y", "facet"].map((axis, i) => (chosen.maps[axis] === "" || known.includes(chosen.maps[axis]) ? chosen.maps[axis] : usual[i] ?? ""));
  return asked[0] && asked[1] && asked[0] !== asked[1] ? asked : usual;
}

function mapsCard() {
  const several = study.knobs.filter((knob) => knob.levels.length > 1);
  if (several.length < 2 || !study.trials.length) return "";
  const [x, y, facet] = mapKnobs(), metric = metricOf(chosen.metric);
  const maps = facet && facet !== x && facet !== y ? settingsOf(knobOf(facet), MOST_MAPS) : [{ value: "", text: "" }];
  const grid = maps.map((setting) => cellsOf(metric, knobOf(x), knobOf(y), maps.length > 1 || setting.text ? knobOf(facet) : null, setting));
  const values = grid.flat(2).map(({ value }) => value).filter(Number.isFinite);
  const select = (axis, value, none) => element("label", null, `${{ x: "across", y: "upwards", facet: "a map each" }[axis]} `,
    element("select", { "data-axis": axis, onchange: (event) => { chosen.maps = { x, y, facet, [axis]: event.target.value }; keep(); draw(); } },
      none ? element("option", { value: "", selected: !value }, "—") : "", several.map(({ name }) => element("option", { value: name, selected: name === value }, name))));
  return card(["Maps of ", named("span", null, metric.name)], "maps", element("p", { class: "map-bar" }, select("x", x), select("y", y), select("facet", facet, true)),
    values.length ? [element("div", { class: "maps" }, maps.map((setting, i) => mapOf(metric, grid[i], knobOf(x), knobOf(y), setting.text ? `${facet} = ${setting.text}` : "", values))), scaleOf(metric, values)]
      : element("p", { class: "quiet" }, "No valid trial yet."));
}

// y → x: the mean of the trials there, whatever the other knobs were; else the expected value in the best configuration.
function cellsOf(metric, x, y, facet, setting) {
  const usual = study.surface, own = usual && usual.metric === metric.name && usual.x === x.name && usual.y === y.name && (usual.facet || "") === (facet?.name ?? "");
  const across = settingsOf(x, MOST_ACROSS), upwards = settingsOf(y, MOST_ACROSS);
  const map = own ? Math.max(0, usual.text.facet.indexOf(setting.text)) : 0;
  return upwards.map((b) => across.map((a) => {
    const wanted = { [x.name]: a.value, [y.name]: b.value, ...(facet && { [facet.name]: setting.value }) };
    const trials = study.trials.filter((one) => one.counts && Number.isFinite(one.metrics[metric.name]) && Object.entries(wanted).every(([name, value]) => one.configuration[name] === value));
    const expected = own ? usual.expected[map]?.[usual.text.y.indexOf(b.text)]?.[usual.text.x.indexOf(a.text)] : expectedAt(metric, wanted);
    return { a, b, trials, measured: trials.length > 0, value: trials.length ? meanOf(trials.map((one) => one.metrics[metric.name])) : expected ?? NaN };
  }));
}

function meanOf(values) {
  if (values.every((value) => value > 0)) return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function expectedAt(metric, wanted) {
  const law = laws.get(metric.name);
  if (!law || !study.best) return NaN;
  const others = Object.fromEntries(study.knobs.map((knob) => [knob.name, knob.levels[0]?.value]));
  return meanAt(law, featuresOf({ ...others, ...study.best.configuration, ...wanted }));
}

function mapOf(metric, cells, x, y, title, values) {
  const across = cells[0].length, wide = Math.max(CELL.least, Math.min(CELL.most, Math.floor(520 / across)));
  const width = CELL.left + across * wide + 8, bottom = CELL.top + cells.length * CELL.height, height = bottom + CELL.bottom;
  const svg = shape("svg", { class: "map", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${metric.name} over ${x.name} and ${y.name}${title ? `, ${title}` : ""}` },
    title ? shape("text", { class: "map-title", x: CELL.left, y: 14 }, title) : "");
  cells.forEach((row, j) => {
    const top = bottom - (j + 1) * CELL.height;
    svg.append(shape("text", { class: "tick end", x: CELL.left - 7, y: top + CELL.height / 2 + 4 }, row[0].b.text));
    row.forEach((cell, i) => svg.append(cellOf(metric, cell, CELL.left + i * wide, top, wide, values)));
  });
  cells[0].forEach((cell, i) => svg.append(shape("text", { class: "tick", x: CELL.left + (i + 0.5) * wide, y: bottom + 14 }, wide < 44 && cell.a.text.length > 5 ? cell.a.text.replace(" ", "").slice(0, 6) : cell.a.text)));
  svg.append(shape("text", { class: "tick axis-name", x: CELL.left + (across * wide) / 2, y: bottom + 30 }, x.name), shape("text", { class: "tick axis-name", x: 12, y: bottom - (cells.length * CELL.height) / 2, transform: `rotate(-90 12 ${bottom - (cells.length * CELL.height) / 2})` }, y.name));
  return svg;
}

function cellOf(metric, cell, left, top, wide, values) {
  if (!Number.isFinite(cell.value)) return shape("rect", { class: "cell none", x: left + 0.5, y: top + 0.5, width: wide - 1, height: CELL.height - 1 }, shape("title", null, "not allowed, or nothing is known"));
  const part = partOf(cell.value, values), best = cell.value === (metric.goal === "min" ? Math.min(...values) : Math.max(...values));
  const words = cell.measured ? `${valueText(metric, cell.value)}, ${counted(cell.trials.length, "trial")}: ${cell.trials.slice(0, 12).map(({ number, text }) => `${number} (${text.metrics[metric.name]})`).join(", ")}` : `not tried; expected ${valueText(metric, cell.value)}`;
  const group = shape("g", { class: `cell${cell.measured ? "" : " expected"}${best ? " best" : ""}`, tabindex: cell.measured ? "0" : null, "data-trials": cell.trials.map(({ number }) => number).join(" "), onclick: () => cell.measured && point(cell.trials[0].number) },
    shape("title", null, `${cell.a.text}, ${cell.b.text}: ${words}`), shape("rect", { x: left + 0.5, y: top + 0.5, width: wide - 1, height: CELL.height - 1, style: `fill: ${shade(part)}` }));
  if (wide >= 40) group.append(shape("text", { class: part > 0.52 ? "on-dark" : "on-light", x: left + wide / 2, y: top + CELL.height / 2 + 4 }, quantity(cell.value * metric.factor, metric.unit).replace(metric.unit === "ns" || metric.unit === "bytes" ? "" : metric.unit, "").trim()));
  return group;
}

// Darker is more, as in the paper; values that are positive and far apart have even steps of the logarithm.
function partOf(value, values) {
  const low = Math.min(...values), high = Math.max(...values), f = scaled(low > 0 && high / low > 20);
  return high > low ? (f(value) - f(low)) / (f(high) - f(low)) : 1;
}

const shade = (part) => `color-mix(in oklab, var(--heat-high) ${(part * 100).toFixed(1)}%, var(--heat-low))`;

function scaleOf(metric, values) {
  const low = Math.min(...values), high = Math.max(...values), bar = element("span", { class: "scale-bar" });
  return element("p", { class: "scale small" }, valueText(metric, low), bar, valueText(metric, high), element("span", { class: "quiet" }, metric.goal === "min" ? " · less is better" : metric.goal === "max" ? " · more is better" : "",
    " · dashed and slanted: expected, not tried · framed: the best shown · select a cell for its trials"));
}

const COURSE = { width: 640, height: 230, left: 96, right: 14, top: 12, bottom: 34 };

function progressCard() {
  const metric = metricOf(chosen.metric), seen = study.trials.filter((one) => Number.isFinite(one.metrics[metric?.name]));
  if (!seen.length) return "";
  const values = seen.map((one) => one.metrics[metric.name]), log = Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) > 20, f = scaled(log);
  const low = f(Math.min(...values)), high = f(Math.max(...values)), pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  const last = study.trials.at(-1).number, bottom = COURSE.height - COURSE.bottom;
  const x = (number) => COURSE.left + ((number - 0.5) / last) * (COURSE.width - COURSE.left - COURSE.right);
  const y = (value) => bottom - ((f(value) - low + pad) / (high - low + 2 * pad)) * (bottom - COURSE.top);
  const svg = shape("svg", { class: "course", viewBox: `0 0 ${COURSE.width} ${COURSE.height}`, role: "img", "aria-label": `${metric.name} of each trial, and the best so far` },
    marksOf(log, Math.min(...values), Math.max(...values)).map((at) => [shape("path", { class: "rule", d: `M${COURSE.left},${y(at)} H${COURSE.width - COURSE.right}` }), shape("text", { class: "tick end", x: COURSE.left - 6, y: y(at) + 4 }, valueText(metric, at))]),
    ticks(0, last, 8).filter((at) => at >= 1 && Number.isInteger(at)).map((at) => shape("text", { class: "tick", x: x(at), y: bottom + 15 }, String(at))),
    shape("text", { class: "tick axis-name", x: (COURSE.left + COURSE.width) / 2, y: COURSE.height - 4 }, "trial"), metric.goal ? shape("path", { class: "best-line", d: bestLine(metric, seen, x, y, last) }) : "",
    study.trials.filter((one) => one.state === "invalid").map((one) => shape("path", { class: "mark invalid", d: `M${x(one.number) - 3},${bottom - 3} l6,6 m0,-6 l-6,6`, onclick: () => point(one.number) }, shape("title", null, `trial ${one.number}, invalid: ${one.text.reasons}`))),
    seen.map((one) => markOf(metric, one, x, y)));
  return card(["Progress in ", named("span", null, metric.name)], "progress", svg, element("p", { class: "small quiet legend" }, "line: best so far · ● trial · ○ ended early · △ disturbed by others · × invalid"));
}

const marksOf = (log, low, high) => (log ? ticks(Math.log10(low), Math.log10(high), 4).map((at) => 10 ** at) : ticks(low, high, 4));

function markOf(metric, one, x, y) {
  const at = { cx: x(one.number), cy: y(one.metrics[metric.name]) };
  const title = shape("title", null, `trial ${one.number}: ${one.text.metrics[metric.name]}\n${Object.entries(one.text.settings).map(([name, text]) => `${name} = ${text}`).join(", ")}${one.text.reasons ? `\n${one.text.reasons}` : ""}`);
  const shared = { onclick: () => point(one.number), "data-trial": one.number };
  if (one.state === "disturbed") return shape("path", { class: "mark disturbed", d: `M${at.cx},${at.cy - 5} l5,9 h-10 z`, ...shared }, title);
  return shape("circle", { class: `mark ${one.state === "ended early" ? "early" : "done"}`, ...at, r: 3.6, ...shared }, title);
}

function bestLine(metric, seen, x, y, last) {
  let best = null, path = "";
  for (const one of seen.filter(({ counts, state }) => counts && state !== "ended early")) {
    const value = one.metrics[metric.name];
    if (best != null && (metric.goal === "min" ? value >= best : value <= best)) continue;
    path += best == null ? `M${x(one.number)},${y(value)}` : ` H${x(one.number)} V${y(value)}`;
    best = value;
  }
  return best == null ? "" : `${path} H${x(last)}`;
}

const FRONT = { width: 560, height: 320, left: 84, right: 16, top: 12, bottom: 46 };

function frontCard() {
  const goals = study.metrics.filter(({ goal }) => goal);
  if (!study.pareto.length || goals.length < 2) return "";
  const [a, b] = chosen.front.map(metricOf).filter(Boolean).length === 2 ? chosen.front.map(metricOf) : goals;
  const choice = goals.length > 2 ? element("p", { class: "map-bar" }, [a, b].map((one, i) => element("select", { "aria-label": i ? "upwards" : "across", onchange: (event) => { chosen.front = i ? [a.name, event.target.value] : [event.target.value, b.name]; keep(); draw(); } },
    goals.map(({ name }) => element("option", { value: name, selected: name === one.name }, name))))) : "";
  const rows = study.pareto.map((one) => [named("span", null, one.text.configuration), ...goals.map(({ name }) => one.text.metrics[name]), one.text.probability]);
  const table = (some) => plainTable(["configuration", ...goals.map(({ name }) => name), "sure"], some, goals.map((_, i) => i + 1));
  const more = rows.length > 8 ? element("details", null, element("summary", null, `${rows.length - 8} more`), table(rows.slice(8))) : "";
  return card("No other is better in every metric", "front", choice, frontChart(a, b), table(rows.slice(0, 8)), more);
}

function frontChart(a, b) {
  const seen = study.trials.filter((one) => one.counts && Number.isFinite(one.metrics[a.name]) && Number.isFinite(one.metrics[b.name]));
  const x = axisOf(a, seen.map((one) => one.metrics[a.name]), FRONT.left, FRONT.width - FRONT.right), y = axisOf(b, seen.map((one) => one.metrics[b.name]), FRONT.height - FRONT.bottom, FRONT.top);
  const bottom = FRONT.height - FRONT.bottom;
  return shape("svg", { class: "course front", viewBox: `0 0 ${FRONT.width} ${FRONT.height}`, role: "img", "aria-label": `${a.name} and ${b.name} of all trials` },
    y.marks.map((at) => [shape("path", { class: "rule", d: `M${FRONT.left},${y.at(at)} H${FRONT.width - FRONT.right}` }), shape("text", { class: "tick end", x: FRONT.left - 6, y: y.at(at) + 4 }, valueText(b, at))]),
    x.marks.map((at) => shape("text", { class: "tick", x: x.at(at), y: bottom + 15 }, valueText(a, at))),
    shape("text", { class: "tick axis-name", x: (FRONT.left + FRONT.width) / 2, y: FRONT.height - 10 }, `${a.name} (${a.goal === "max" ? "more" : "less"} is better)`),
    shape("text", { class: "tick axis-name", x: 12, y: bottom / 2, transform: `rotate(-90 12 ${bottom / 2})` }, `${b.name} (${b.goal === "max" ? "more" : "less"} is better)`),
    seen.map((one) => shape("circle", { class: "mark behind", cx: x.at(one.metrics[a.name]), cy: y.at(one.metrics[b.name]), r: 3.2, onclick: () => point(one.number) }, shape("title", null, `trial ${one.number}: ${one.text.metrics[a.name]}, ${one.text.metrics[b.name]}`))),
    study.pareto.filter((one) => one.intervals[a.name] && one.intervals[b.name]).map((one) => frontMark(one, a, b, x, y)));
}

function frontMark(one, a, b, x, y) {
  const middle = one.metrics[a.name], up = one.metrics[b.name], [low, high] = one.intervals[a.name], [from, to] = one.intervals[b.name];
  return shape("g", { class: "front-point" }, shape("title", null, `${one.text.configuration}\n${one.text.metrics[a.name]}, ${one.text.metrics[b.name]}\n${one.text.probability} sure that none is better in every metric`),
    shape("path", { class: "error", d: `M${x.at(low)},${y.at(up)} H${x.at(high)} M${x.at(middle)},${y.at(from)} V${y.at(to)}` }), shape("circle", { cx: x.at(middle), cy: y.at(up), r: 5 }));
}

function axisOf(metric, values, start, end) {
  const low = Math.min(...values), high = Math.max(...values), log = low > 0 && high / low > 20, f = scaled(log), pad = (f(high) - f(low)) * 0.05 || 1;
  return { at: (value) => start + ((f(value) - f(low) + pad) / (f(high) - f(low) + 2 * pad)) * (end - start), marks: marksOf(log, low, high) };
}
