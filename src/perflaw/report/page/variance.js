// The variance view: which metric, pattern, node and function are looked at; keys and address.

// `node` is a number within the metric; `f` the function on the screen, which may be in no pattern of this metric.
const studying = { metric: 0, node: null, f: null, filter: "", all: false, every: false };
const screens = new Map();
let asking = 0;

const metricNow = () => variance.metrics[studying.metric];
const functionOf = (f) => variance.functions[f];
const patternOf = (id) => metricNow().patterns.findIndex((one) => one.nodes.some((node) => node.id === id));
const nodeOf = (id) => metricNow().patterns[patternOf(id)]?.nodes.find((node) => node.id === id);

const VARIANCE_HELP = "Each row is a pattern: a function whose cost varies highly, with what that comes from below it. "
  + "Select a node of the graph (click, or n and p) to see why that function is sometimes slow; ↑ ↓ move through the patterns.";

function buildVariance() {
  const metrics = variance.metrics.map((one, i) => [i, one.label]);
  const { summary, notes, patterns } = metricNow();
  document.getElementById("variance").replaceChildren(
    element("div", { class: "variance-bar" }, metrics.length > 1 ? choiceOf("Metric", metrics, studying.metric, changeMetric, "metric") : element("b", null, metricNow().label),
      element("span", { class: "quiet" }, summary)),
    ...notes.map((note) => named("p", { class: "quiet note small" }, note)),
    patterns.length ? element("div", { class: "pattern-view" }, patternList(), element("div", { id: "graph" }))
      : element("p", { class: "reason" }, `No function's ${metricNow().label} varies highly.`),
    sincePanel(metricNow()),
    element("section", { id: "screen", "aria-label": "Selected function" }));
  if (patterns.length) filterPatterns();
}

function startVariance() {
  document.addEventListener("keydown", onVarianceKey);
  studying.f = variance.opens;
  settle();
}

// A node of the function looked at; else the first of all.
function settle() {
  const nodes = metricNow().patterns.flatMap((one) => one.nodes);
  const node = nodes.find((one) => one.id === studying.node && one.f === studying.f) ?? nodes.find((one) => one.f === studying.f);
  studying.node = node?.id ?? (studying.f == null ? nodes[0]?.id ?? null : null);
  studying.f ??= nodes[0]?.f ?? null;
}

function changeMetric(place) {
  Object.assign(studying, { metric: place, node: null });
  settle();
  drawVariance();
  rememberNow();
}

function drawVariance() {
  if (!varianceShown) return;
  buildVariance();
  showNode();
}

function chooseNode(id, focus = false) {
  Object.assign(studying, { node: id, f: nodeOf(id).f });
  showNode();
  if (focus) document.querySelector(`#graph [data-node="${id}"]`)?.focus({ preventScroll: true });
  rememberNow();
}

function choosePattern(place, focus = false) {
  const pattern = metricNow().patterns[place];
  if (!pattern) return;
  studying.every = false;
  chooseNode(pattern.nodes[0].id);
  if (focus) variancePatterns[place].element.focus({ preventScroll: true });
}

function showNode() {
  const place = studying.node == null ? -1 : patternOf(studying.node);
  for (const entry of variancePatterns) {
    entry.element.setAttribute("aria-selected", entry.place === place);
    entry.element.tabIndex = entry.place === Math.max(0, place) ? 0 : -1;
    if (entry.place === place) { entry.element.hidden = false; entry.element.scrollIntoView({ block: "nearest" }); }
  }
  showGraph(metricNow().patterns[Math.max(0, place)]);
  showScreen(studying.f);
}

function showGraph(pattern) {
  const box = document.getElementById("graph");
  if (!box || !pattern) return;
  const { svg, left } = drawPattern(pattern, studying.node, (id) => chooseNode(id, true), studying.every);
  const button = element("button", { type: "button", class: "link", onclick: () => { studying.every = true; showGraph(pattern); } }, "draw all");
  const key = [["Task", "varies highly"], ["Contrast", "steady here, or passes variance on"], ["Contributor", "steady, yet where variance comes from"]];
  box.replaceChildren(element("p", { class: "legend small quiet" }, key.map(([kind, words]) => [element("span", { class: `node-key is-${kind}` }), `${kind}: ${words}  `]), "dotted: share of the variance that comes from there  μ mean, γ CoV, N calls, V impact",
    left ? [`; ${plural(left, "lighter node")} not drawn`, button] : ""), element("div", { class: "graph-scroll", tabindex: "0", "aria-label": "Graph" }, svg));
  const chosen = box.querySelector("[aria-pressed=true]"), scroll = box.querySelector(".graph-scroll");
  svg.style.width = `${Math.max(Math.min(svg.width.baseVal.value, scroll.clientWidth), svg.width.baseVal.value * 0.8)}px`;
  svg.style.height = "auto";
  if (!chosen) return;
  const inside = chosen.getBoundingClientRect(), around = scroll.getBoundingClientRect();
  scroll.scrollLeft += inside.left - around.left - (around.width - inside.width) / 2;
  scroll.scrollTop += inside.top - around.top - (around.height - inside.height) / 2;
}

async function showScreen(f) {
  const box = document.getElementById("screen"), turn = ++asking;
  if (f == null) return box.replaceChildren();
  const packed = metricNow().screens[f];
  if (!packed) return box.replaceChildren(element("h2", null, named("span", null, functionOf(f).name)),
    element("p", { class: "reason" }, `The page explains the most important functions. This one: `, element("code", null, `perflaw variance ${functionOf(f).name} --metric ${metricNow().name}`)));
  const key = `${studying.metric} ${f}`;
  if (!screens.has(key)) screens.set(key, await inflate(packed));
  if (turn !== asking) return;
  const alone = studying.node == null ? [element("p", { class: "reason" }, `In no pattern by ${metricNow().label}.`)] : [];
  box.replaceChildren(...alone, ...screenOf(screens.get(key), f));
}

function onVarianceKey(event) {
  if (!varianceShown || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape" && event.target.id === "variance-text") { event.target.value = studying.filter = ""; filterPatterns(); return; }
  if (event.target.closest("input, select, textarea, summary")) return;
  if (event.key === "/" && metricNow().patterns.length) { event.preventDefault(); document.getElementById("variance-text").focus(); return; }
  const place = patternOf(studying.node);
  if ((event.key === "n" || event.key === "p") && place >= 0) {
    const { nodes } = metricNow().patterns[place], here = nodes.findIndex((node) => node.id === studying.node);
    chooseNode(nodes[Math.min(nodes.length - 1, Math.max(0, here + (event.key === "n" ? 1 : -1)))].id, true);
    return;
  }
  const way = STEPS[event.key], rows = variancePatterns.filter((entry) => !entry.element.hidden);
  if (!way || !rows.length || (Math.abs(way) !== 1 && !event.target.closest("#patterns"))) return;
  event.preventDefault();
  const here = rows.findIndex((entry) => entry.place === place);
  choosePattern(rows[Math.min(rows.length - 1, Math.max(0, here + way))].place, true);
}

// What the address says of this view; a link shows the same.
function varianceAddress() {
  const parts = [["view", "variance"], ["metric", metricNow().name]];
  if (studying.f != null) parts.push(["function", linkable(functionOf(studying.f).name)]);
  if (studying.node != null) parts.push(["node", String(studying.node)]);
  if (studying.filter) parts.push(["filter", linkable(studying.filter)]);
  if (view.theme !== "auto") parts.push(["theme", view.theme]);
  return parts;
}

function followVariance(parts) {
  if (["auto", "light", "dark"].includes(parts.get("theme"))) view.theme = parts.get("theme");
  const metric = variance.metrics.findIndex((one) => one.name === parts.get("metric"));
  if (metric >= 0) studying.metric = metric;
  studying.filter = (parts.get("filter") ?? "").toLowerCase();
  const node = parts.has("node") ? nodeOf(Number(parts.get("node"))) : null;
  const f = variance.functions.findIndex((one) => linkable(one.name) === parts.get("function"));
  if (node && (f < 0 || functionOf(node.f).name === functionOf(f).name)) Object.assign(studying, { node: node.id, f: node.f });
  else if (f >= 0) Object.assign(studying, { node: null, f });
  settle();
  for (const button of document.querySelectorAll("[data-choice=theme] button")) button.setAttribute("aria-pressed", button.dataset.value === view.theme);
  varianceShown = false; // drawn once, below
  setTheme(view.theme);
  showView("variance");
}
