// Heat maps as the paper's Figure 3: two knobs, a map for each setting of a third, one scale of colours for all of them.

const CELL = { least: 26, most: 56, height: 30, left: 70, bottom: 34, top: 22 };
const MOST_ACROSS = 14, MOST_MAPS = 8;

// The settings along an axis: few ones all, of many those tried.
function settingsOf(knob, most) {
  if (knob.levels.length <= most) return knob.levels;
  const tried = knob.levels.filter(({ value }) => study.trials.some((trial) => trial.values[knob.name] === value));
  const some = tried.length >= 2 ? tried : knob.levels;
  if (some.length <= most) return some;
  return Array.from({ length: most }, (_, i) => some[Math.round((i * (some.length - 1)) / (most - 1))]);
}

function mapKnobs() {
  const known = study.knobs.filter((knob) => knob.levels.length > 1).map(({ name }) => name);
  const usual = study.surface ? [study.surface.x.name, study.surface.y.name, study.surface.facet.name] : [known[0], known[1], known[2] ?? ""];
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

// y → x: what was measured there, whatever else was set; else what is expected of it, as in the best configuration.
function cellsOf(metric, x, y, facet, setting) {
  const usual = study.surface, own = usual && usual.metric === metric.name && usual.x.name === x.name && usual.y.name === y.name && (usual.facet.name || "") === (facet?.name ?? "");
  const across = settingsOf(x, MOST_ACROSS), upwards = settingsOf(y, MOST_ACROSS);
  const map = own ? Math.max(0, usual.facet.texts.indexOf(setting.text)) : 0;
  return upwards.map((b) => across.map((a) => {
    const wanted = { [x.name]: a.value, [y.name]: b.value, ...(facet && { [facet.name]: setting.value }) };
    const trials = study.trials.filter((one) => one.counts && Number.isFinite(one.metrics[metric.name]) && Object.entries(wanted).every(([name, value]) => one.values[name] === value));
    const expected = own ? usual.expected[map]?.[usual.y.texts.indexOf(b.text)]?.[usual.x.texts.indexOf(a.text)] : expectedAt(metric, wanted);
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
  return meanAt(law, featuresOf({ ...others, ...study.best.values, ...wanted }));
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
  const words = cell.measured ? `${told(metric, cell.value)}, ${plural(cell.trials.length, "trial")}: ${cell.trials.slice(0, 12).map(({ number, texts }) => `${number} (${texts[metric.name]})`).join(", ")}` : `not tried; expected ${told(metric, cell.value)}`;
  const group = shape("g", { class: `cell${cell.measured ? "" : " expected"}${best ? " best" : ""}`, tabindex: cell.measured ? "0" : null, "data-trials": cell.trials.map(({ number }) => number).join(" "), onclick: () => cell.measured && point(cell.trials[0].number) },
    shape("title", null, `${cell.a.text}, ${cell.b.text}: ${words}`), shape("rect", { x: left + 0.5, y: top + 0.5, width: wide - 1, height: CELL.height - 1, style: `fill: ${shade(part)}` }));
  if (wide >= 40) group.append(shape("text", { class: part > 0.52 ? "on-dark" : "on-light", x: left + wide / 2, y: top + CELL.height / 2 + 4 }, quantity(cell.value * metric.factor, metric.unit).replace(metric.unit === "ns" || metric.unit === "bytes" ? "" : metric.unit, "").trim()));
  return group;
}

// Darker is more, as in the paper; where all is positive and far apart, even steps of the logarithm.
function partOf(value, values) {
  const low = Math.min(...values), high = Math.max(...values), f = scaled(low > 0 && high / low > 20);
  return high > low ? (f(value) - f(low)) / (f(high) - f(low)) : 1;
}

const shade = (part) => `color-mix(in oklab, var(--heat-high) ${(part * 100).toFixed(1)}%, var(--heat-low))`;

function scaleOf(metric, values) {
  const low = Math.min(...values), high = Math.max(...values), bar = element("span", { class: "scale-bar" });
  return element("p", { class: "scale small" }, told(metric, low), bar, told(metric, high), element("span", { class: "quiet" }, metric.goal === "min" ? " · less is better" : metric.goal === "max" ? " · more is better" : "",
    " · dashed and slanted: not tried, what is expected · framed: the best shown · select a cell for its trials"));
}
