// The variance view: the patterns, which metric, pattern, node and function are selected, keys and address.

// `node` is a number within the metric; `function` the function on the screen, which may be in no pattern of this metric.
const studying = { metric: 0, node: null, function: null, filter: "", all: false, every: false };
const screens = new Map();
let asking = 0;

const metricNow = () => variance.metrics[studying.metric];
const functionOf = (f) => variance.functions[f];
const patternOf = (id) => metricNow().patterns.findIndex((one) => one.nodes.some((node) => node.id === id));
const nodeAt = (id) => metricNow().patterns[patternOf(id)]?.nodes.find((node) => node.id === id);

const VARIANCE_HELP = "Each row is a pattern: a function whose cost varies highly, with the callees that its variance comes from. "
  + "Select a node of the graph (click, or n and p) to see why that function is sometimes slow; ↑ ↓ move through the patterns.";

function buildVariance() {
  const metrics = variance.metrics.map((one, i) => [i, one.label]);
  const { summary, notes, patterns } = metricNow();
  document.getElementById("variance").replaceChildren(
    element("div", { class: "variance-bar" }, metrics.length > 1 ? choiceOf("Metric", metrics, studying.metric, changeMetric, "metric") : element("b", null, metricNow().label),
      element("span", { class: "quiet" }, summary)),
    latencyPanel(metricNow()),
    ...notes.map((note) => named("p", { class: "quiet note small" }, note)),
    patterns.length ? element("div", { class: "pattern-view" }, patternList(), element("div", { id: "graph" }))
      : element("p", { class: "reason" }, `No function's ${metricNow().label} varies highly.`),
    sincePanel(metricNow()),
    element("section", { id: "screen", "aria-label": "Selected function" }));
  if (patterns.length) filterPatterns();
}

function startVariance() {
  document.addEventListener("keydown", onVarianceKey);
  studying.function = variance.opens;
  settle();
}

// Selects a node of the selected function, else the first node of all.
function settle() {
  const nodes = metricNow().patterns.flatMap((one) => one.nodes);
  const node = nodes.find((one) => one.id === studying.node && one.function === studying.function) ?? nodes.find((one) => one.function === studying.function);
  studying.node = node?.id ?? (studying.function == null ? nodes[0]?.id ?? null : null);
  studying.function ??= nodes[0]?.function ?? null;
}

function changeMetric(place) {
  Object.assign(studying, { metric: place, node: null });
  settle();
  drawVariance();
  rememberNow();
}

function drawVariance() {
  if (!isShown("variance")) return;
  buildVariance();
  showNode();
}

function chooseNode(id, focus = false) {
  Object.assign(studying, { node: id, function: nodeAt(id).function });
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
  showScreen(studying.function);
}

function showGraph(pattern) {
  const box = document.getElementById("graph");
  if (!box || !pattern) return;
  const { svg, left } = drawPattern(pattern, studying.node, (id) => chooseNode(id, true), studying.every);
  const button = element("button", { type: "button", class: "link", onclick: () => { studying.every = true; showGraph(pattern); } }, "draw all");
  const key = [["Task", "varies highly"], ["Contrast", "steady here, or passes variance on"], ["Contributor", "steady, yet where variance comes from"]];
  box.replaceChildren(element("p", { class: "legend small quiet" }, key.map(([kind, words]) => [element("span", { class: `node-key is-${kind}` }), `${kind}: ${words}  `]), "dotted: share of the variance that comes from there  μ mean, γ CoV, N calls, V impact",
    left ? [`; ${counted(left, "lighter node")} not drawn`, button] : ""), element("div", { class: "graph-scroll", tabindex: "0", "aria-label": "Graph" }, svg));
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
    element("p", { class: "reason" }, `The page explains only the most important functions; for this one: `, element("code", null, `perflaw variance ${functionOf(f).name} --metric ${metricNow().name}`)));
  const key = `${studying.metric} ${f}`;
  if (!screens.has(key)) screens.set(key, await inflate(packed));
  if (turn !== asking) return;
  const alone = studying.node == null ? [element("p", { class: "reason" }, `In no pattern by ${metricNow().label}.`)] : [];
  box.replaceChildren(...alone, ...screenOf(screens.get(key), f));
}

function onVarianceKey(event) {
  if (!isShown("variance") || event.ctrlKey || event.altKey || event.metaKey) return;
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

// The choices of this view in the address.
function varianceAddress() {
  const parts = [["metric", metricNow().name]];
  if (studying.function != null) parts.push(["function", linkable(functionOf(studying.function).name)]);
  if (studying.node != null) parts.push(["node", String(studying.node)]);
  if (studying.filter) parts.push(["filter", linkable(studying.filter)]);
  return parts;
}

function followVariance(parts) {
  const metric = variance.metrics.findIndex((one) => one.name === parts.get("metric"));
  if (metric >= 0) studying.metric = metric;
  studying.filter = (parts.get("filter") ?? "").toLowerCase();
  const node = parts.has("node") ? nodeAt(Number(parts.get("node"))) : null;
  const f = variance.functions.findIndex((one) => linkable(one.name) === parts.get("function"));
  if (node && (f < 0 || functionOf(node.function).name === functionOf(f).name)) Object.assign(studying, { node: node.id, function: node.function });
  else if (f >= 0) Object.assign(studying, { node: null, function: f });
  settle();
}

const MOST_LISTED = 50;
let variancePatterns = [];

function patternList() {
  const heads = ["", "function", "impact (VIM)", "CoV"];
  const box = element("div", { id: "patterns", role: "listbox", "aria-label": "Patterns, by their variance impact" });
  variancePatterns = metricNow().patterns.map((pattern, place) => ({ pattern, place, element: patternRow(pattern, place) }));
  box.append(...variancePatterns.map((entry) => entry.element));
  const input = element("input", { id: "variance-text", type: "search", placeholder: "function  ( / )", "aria-label": "Show patterns with a function whose name contains", value: studying.filter });
  input.addEventListener("input", () => { studying.filter = input.value.toLowerCase(); filterPatterns(); remember(); });
  return element("div", { class: "pattern-list" }, element("div", { class: "pattern-bar" }, input, element("span", { id: "patterns-shown" })),
    element("div", { class: "pattern-heads small quiet" }, heads.map((text) => element("span", null, text))), box);
}

function patternRow(pattern, place) {
  const [root] = pattern.nodes, { name } = functionOf(root.function);
  const more = pattern.nodes.length > 1 ? `${counted(pattern.nodes.length, "node")} · ` : "";
  const from = pattern.sources.length ? `${more}${pattern.sources[0]}` : `${more}${root.type}`;
  return element("div", { class: "pattern", role: "option", "aria-selected": "false", "data-pattern": String(place), tabindex: -1, title: [name, ...pattern.sources].join("\n"), onclick: () => choosePattern(place, true) },
    element("span", { class: "rank" }, String(place + 1)),
    element("span", { class: "what" }, named("span", { class: "clip name" }, name), named("span", { class: "clip small quiet" }, from)),
    element("span", { class: "impact" }, bar(pattern.part ?? 0), element("span", { class: "small" }, root.text.vim)),
    element("span", { class: "number" }, root.text.cov, ["interference", "waiting"].includes(root.cause) ? element("span", { class: `badge cause-${root.cause}`, title: root.cause }, "off CPU") : ""));
}

// Shows the first patterns, the selected one, and those that are searched for.
function filterPatterns() {
  let shown = 0;
  for (const { pattern, place, element: row } of variancePatterns) {
    pattern.searched ??= pattern.nodes.map((node) => functionOf(node.function).name).join("\n").toLowerCase();
    const listed = studying.filter ? pattern.searched.includes(studying.filter) : studying.all || place < MOST_LISTED || row.ariaSelected === "true";
    row.hidden = !listed;
    shown += listed;
  }
  const all = variancePatterns.length;
  const button = element("button", { type: "button", class: "link", onclick: showAllPatterns }, "show all");
  document.getElementById("patterns-shown").replaceChildren(shown === all ? counted(all, "pattern") : `${shown} of ${all}`, shown === all ? "" : button);
}

function showAllPatterns() {
  Object.assign(studying, { all: true, filter: "" });
  document.getElementById("variance-text").value = "";
  filterPatterns();
  remember();
}

// Coroutines: what their latency varies by. Patterns are of the time in their own code and callees.
function latencyPanel({ latencies }) {
  if (!latencies.length) return "";
  const open = (f) => { Object.assign(studying, { node: null, function: f }); settle(); showNode(); rememberNow(); };
  const rows = latencies.map((one) => [element("button", { type: "button", class: "link", onclick: () => open(one.function) }, element("bdi", null, functionOf(one.function).name)),
    one.n, one.mean, one.cov, one.p99, one.sources.map((words, i) => [i ? ", " : "", foreign(words)])]);
  return element("section", { class: "panel latencies", "aria-label": "Latency of coroutines" }, element("h3", null, "Latency of coroutines, from the call to the result"),
    plainTable(["coroutine", "calls", "mean", "CoV", "p99", "comes from awaiting"], rows, [1, 2, 3, 4]));
}

const SINCE = { appeared: "now varies highly", went: "no longer does", changed: "varies for other reasons, or by another amount" };

function sincePanel({ since }) {
  if (!since) return "";
  const rows = since.rows.map((row) => [sinceName(row), element("span", { class: `badge since-${row.what}`, title: SINCE[row.what] }, row.what), row.old, row.new,
    element("ul", { class: "shares" }, row.shares.map((share) => element("li", null, "variance of ", element("bdi", null, share.of), " from ", element("bdi", null, share.from), `: ${share.old} before, `, element("b", null, share.new), " now")))]);
  const words = rows.length ? `${counted(rows.length, "pattern")} appeared, went or changed, ${since.stay} stay as they were.` : `Nothing changed: ${counted(since.stay, "pattern")} as before.`;
  return element("section", { class: "panel since", "aria-label": "What changed" }, element("h3", null, "What changed since ", element("bdi", null, since.name)), element("p", null, words),
    rows.length ? plainTable(["function", "", "before", "now", "comes from"], rows) : "");
}

// The name links to the pattern where there still is one.
function sinceName(row) {
  if (row.id == null || patternOf(row.id) < 0) return named("span", null, row.component);
  return element("button", { type: "button", class: "link", onclick: () => choosePattern(patternOf(row.id)) }, element("bdi", null, row.component));
}
