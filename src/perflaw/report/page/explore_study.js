// What all parts of a study's page share: the data, what the person chose, and coming back to the same place.

// `study` is the page's data; `embedded` says whether it is one view of the report.
const metricOf = (name) => study.metrics.find((one) => one.name === name);
const knobOf = (name) => study.knobs.find((one) => one.name === name);
const valueText = (metric, value) => quantity(value * metric.factor, metric.unit);

function card(title, id, ...content) {
  return element("section", { class: "panel", id }, element("h2", null, title), content.flat(Infinity).filter((one) => one != null && one !== ""));
}

// The person's choices, kept over a reload. `at` holds the sliders by knob, `maps` the knobs of the heat maps.
const CHOSEN = { theme: "auto", metric: study.metrics[0]?.name ?? "", sort: "number", down: false, filter: "", at: {}, maps: {}, front: [], scroll: 0, table: 0 };
const chosen = { ...CHOSEN, ...recalled() };
if (!metricOf(chosen.metric)) chosen.metric = CHOSEN.metric;

// Pages opened as files may have no storage: the address then holds the colours.
function recalled() {
  try {
    const kept = sessionStorage.getItem(placeOf());
    if (kept) return JSON.parse(kept);
  } catch { /* no storage here, or something else in it */ }
  const theme = new URLSearchParams(location.hash.slice(1)).get("theme");
  return ["light", "dark"].includes(theme) ? { theme } : {};
}

function placeOf() {
  return `perflaw explore ${location.pathname}`;
}

function keep() {
  chosen.scroll = scrollY;
  chosen.table = document.getElementById("trials-scroll")?.scrollTop ?? chosen.table;
  try {
    sessionStorage.setItem(placeOf(), JSON.stringify(chosen));
  } catch { /* no storage here */ }
}

function setTheme(theme) {
  chosen.theme = theme;
  const dark = theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  keep();
}

// Even steps in the logarithm where a scale asks for it.
const scaled = (log) => (log ? Math.log : (x) => x);

// Round numbers between two ends: 1, 2 and 5 times powers of ten.
function ticks(low, high, most = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

// Features of a configuration as laws name them: numbers as they are, a column `knob=option` for settings without order.
function featuresOf(values) {
  const found = {};
  for (const knob of study.knobs) {
    const value = values[knob.name];
    if (value === undefined) continue;
    if (knob.categorical) for (const level of knob.levels) found[`${knob.name}=${level.value}`] = Number(level.value === value);
    else found[knob.name] = Number(value);
  }
  return found;
}

const laws = new Map(study.metrics.map((metric) => [metric.name, metric.law && lawOfTree(metric.law.tree)]));

// Shows a trial in the table.
function point(number) {
  const row = document.querySelector(`#trials [data-trial="${number}"]`);
  if (!row) return;
  for (const other of document.querySelectorAll("#trials tr.pointed")) other.classList.remove("pointed");
  row.classList.add("pointed");
  row.scrollIntoView({ block: "center" });
}
