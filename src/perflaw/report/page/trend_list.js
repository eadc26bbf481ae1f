// What dominates at a size (a slider, a sentence, shares as the size grows), and the list of clusters.

const SHARE_GRID = 64;

function sizePanel() {
  const name = trendFeature();
  const heads = name == null
    ? [element("p", { class: "reason" }, "No feature varies over the runs: counts cannot be predicted.")]
    : [sizeBar(name), othersBar(name), element("p", { id: "dominates", role: "status", "aria-live": "polite" }), element("ol", { id: "leaders" })];
  return element("section", { id: "sizes", "aria-label": "What dominates at a size" },
    element("div", { class: "size-words" }, heads),
    element("div", { id: "share-chart", class: "chart", role: "group", "aria-label": "Share of each cluster in the counts as the size grows" }));
}

function sizeBar(name) {
  const [low, high] = sizeRange(name);
  const scale = notched(low, high);
  const field = element("input", { type: "number", id: "size", step: "any", min: 0, value: trendSize(name), "aria-label": `${name}, size to ask at`,
    oninput: () => { if (Number(field.value) > 0) setSize(name, Number(field.value), field); } });
  const range = element("input", { type: "range", id: "size-slider", min: 0, max: NOTCHES, value: scale.notch(trendSize(name)), "aria-label": `${name}, logarithmic`,
    oninput: () => setSize(name, scale.value(Number(range.value)), range) });
  const times = [1, 10, 100].map((factor) => element("button", { type: "button", "data-times": factor,
    title: `${factor === 1 ? "the largest seen" : `${factor} times the largest seen`}`, onclick: () => setSize(name, featureOf(name).high * factor) }, `${factor}x`));
  return element("form", { class: "size-bar", onsubmit: (event) => event.preventDefault() },
    element("label", null, "what dominates at ", trend.features.length > 1 ? featureSelect(name) : named("b", null, name), " = ", field), range,
    element("span", { class: "choice" }, times));
}

// The other features, held at values that the person chooses.
function othersBar(name) {
  const others = trend.features.filter((one) => one.name !== name);
  if (!others.length) return "";
  return element("form", { class: "size-bar", id: "others", onsubmit: (event) => event.preventDefault() }, element("span", { class: "quiet small" }, "with"), others.slice(0, 8).map((other) => {
    const field = element("input", { type: "number", step: "any", value: trendSize(other.name), "data-size": other.name, "aria-label": `${other.name}, held at`,
      oninput: () => { if (field.value !== "") holdSize(other.name, Number(field.value)); } });
    return element("label", null, named("span", null, other.name), " = ", field);
  }));
}

function holdSize(name, size) {
  looking.sizes[name] = size;
  cancelAnimationFrame(setSize.waiting);
  setSize.waiting = requestAnimationFrame(() => { tellSizes(); drawShares(); drawFit(); });
  remember();
}

function featureSelect(chosen) {
  const choose = (event) => { looking.feature = event.target.value; buildTrend(); drawTrend(); rememberNow(); };
  return element("select", { id: "trend-feature", onchange: choose, "aria-label": "Feature" },
    trend.features.map(({ name }) => element("option", { value: name, selected: name === chosen }, name)));
}

// `from` is the field that is being moved: it must not be written to.
function setSize(name, size, from = null) {
  looking.sizes[name] = size;
  const field = document.getElementById("size"), range = document.getElementById("size-slider");
  if (from !== field) field.value = Number(size.toPrecision(6));
  if (from !== range) range.value = notched(...sizeRange(name)).notch(size);
  cancelAnimationFrame(setSize.waiting);
  setSize.waiting = requestAnimationFrame(() => { tellSizes(); moveMark(name, size); markFit(); });
  remember();
}

// The sentence, the leaders and the list's columns for the chosen size.
function tellSizes() {
  const found = askClusters();
  tellList(found);
  const sentence = document.getElementById("dominates");
  if (!sentence) return;
  const first = found.asked[0];
  if (!first) return sentence.replaceChildren("No cluster has a law in it.");
  sentence.replaceChildren("At ", named("b", null, `${found.name} = ${short(found.size)}`), ` (${timesSeen(found.name, found.size)}), `,
    clusterLink(first), ` is `, element("b", null, shareText(first.part)), ` of the predicted counts, now ${first.text.share}: `, named("span", null, first.places[0] ?? first.text.name),
    first.places.length > 1 ? ` and ${counted(first.places.length + first.more_places - 1, "more place")}` : "", ".");
  document.getElementById("leaders").replaceChildren(...found.asked.slice(0, 6).filter((one) => one.part >= 0.0005).map((one) => leader(one)));
}

const leader = (one) => element("li", null, clusterLink(one, one.text.name), element("span", { class: "quiet" }, ` ${shareText(one.part)}, ${quantity(one.cost, "")}`),
  one.then < one.rank ? element("span", { class: "rising" }, ` ▲ from ${one.rank}`) : "");

function clusterLink(one, words = `cluster ${one.rank}`) {
  return element("button", { type: "button", class: "link cluster-link", title: one.text.name, onclick: () => selectCluster(one.rank) }, clusterSwatch(one), " ", named("span", null, words));
}

// Shares over all sizes of the slider: each coloured cluster, and all others together.
function drawShares() {
  const name = trendFeature();
  const box = document.getElementById("share-chart");
  if (name == null || !box) return box?.remove();
  const [low, high] = sizeRange(name);
  const grid = spread(low, high, SHARE_GRID, []);
  const apart = trend.clusters.filter((one) => one.colour != null).sort((a, b) => a.colour - b.colour);
  const others = trend.clusters.filter((one) => one.colour == null);
  const costs = (one) => grid.map((x) => costAt(one, name, x) ?? 0);
  const rest = others.reduce((sum, one) => costs(one).map((value, i) => value + sum[i]), grid.map(() => 0));
  const layers = [...apart.map((one) => ({ words: `${one.rank} ${one.text.name}`, costs: costs(one), fill: ownColour(one), rank: one.rank })),
    ...(others.length ? [{ words: counted(others.length, "other cluster"), costs: rest, fill: colour("other") }] : [])];
  const whole = grid.map((_, i) => layers.reduce((sum, layer) => sum + layer.costs[i], 0) || 1);
  const traces = layers.map((layer) => ({
    type: "scatter", mode: "lines", stackgroup: "one", x: grid, y: layer.costs.map((value, i) => (100 * value) / whole[i]), name: shortened(layer.words), customdata: grid.map(() => layer.rank ?? null),
    line: { width: 0.5, color: colour("page") }, fillcolor: layer.fill, hovertemplate: `${shortened(layer.words)}: %{y:.1f} %<extra></extra>`,
  }));
  const vertical = { ...axis("% of all counts", false), range: [0, 100], ticksuffix: "" };
  drawChart(box, traces, layout(210, axis(shortened(name), high > 20 * low), vertical, { hovermode: "x unified", clicked: (x) => setSize(trendFeature(), Number(x.toPrecision(4))), shapes: shareShapes(name, trendSize(name)) }));
}

// The dotted line marks the end of the data, the solid line the chosen size.
function shareShapes(name, size) {
  const upright = (x, width, dash) => ({ type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: { width, dash, color: colour("text") } });
  return [upright(featureOf(name).high, 1, "dot"), upright(size, 2.5, "solid")];
}

function moveMark(name, size) {
  const box = document.getElementById("share-chart");
  if (!box?.data) return;
  box.layout.shapes = shareShapes(name, size);
  paint(box);
}

const TREND_COLUMNS = [
  { name: "now", title: "now", key: (one) => one.rank, number: true },
  { name: "then", title: "then", key: (one) => one.then, number: true },
  { name: "cluster", title: "cluster", key: (one) => one.text.name },
  { name: "share", title: "share now", key: (one) => one.share, down: true, number: true },
  { name: "count", title: "lines", key: (one) => one.size, down: true, number: true },
  { name: "law", title: "law", key: (one) => slopeOf(one.laws[trendFeature()]), down: true },
  { name: "power", title: "power law of the paper", key: (one) => one.powers[trendFeature()]?.exponent, down: true },
  { name: "max", title: "most in a run", key: (one) => one.max_cost, down: true, number: true },
  { name: "cost", title: "", key: (one) => one.cost, down: true, number: true },
];
// Longer lists start without the small clusters at their end.
const LONG_TREND = 40;
const trendSorting = { column: null, down: false };
let trendOrder = [];

function listPanel() {
  TREND_COLUMNS.find((one) => one.name === "count").title = trend.noun;
  looking.all ??= trend.clusters.length <= LONG_TREND;
  trendOrder = trend.clusters.map((one) => ({ one, element: clusterRow(one) }));
  const head = element("tr", { role: "row" }, TREND_COLUMNS.map((column) => element("th", { role: "columnheader", class: `t-${column.name}${column.number ? " number" : ""}`, "aria-sort": "none", "data-column": column.name },
    element("button", { type: "button", onclick: () => { sortTrend(column); remember(); } }, column.title))));
  const text = element("input", { type: "search", id: "trend-text", placeholder: "filter: function, file, law", spellcheck: "false", value: looking.filter, "aria-label": "Filter clusters",
    oninput: () => { looking.filter = text.value.toLowerCase().trim(); filterTrend(); remember(); } });
  return element("section", { id: "trend-list", "aria-label": "Clusters" },
    element("form", { class: "trend-filters", onsubmit: (event) => event.preventDefault() }, text, element("output", { id: "trend-shown" })),
    element("div", { id: "trend-scroll", onclick: clickTrend }, element("table", { id: "clusters", role: "grid", "aria-label": "Clusters, one a row" },
      element("thead", { role: "rowgroup" }, head), element("tbody", { role: "rowgroup" }, trendOrder.map((entry) => entry.element)))));
}

function clusterRow(one) {
  const name = trendFeature();
  const law = one.laws[name], power = one.powers[name];
  const cell = (column, number, ...content) => element("td", { role: "gridcell", class: `t-${column}${number ? " number" : ""}` }, ...content);
  const more = one.places.length + one.more_places - 1;
  const places = more > 0 ? `${one.places[0]} and ${more} more` : one.places[0] ?? "";
  return element("tr", { role: "row", tabindex: -1, "aria-selected": "false", "data-rank": one.rank },
    cell("now", true, clusterSwatch(one)),
    cell("then", true),
    element("td", { role: "gridcell", class: "t-cluster", title: [one.text.name, ...one.places].join("\n") },
      named("div", { class: "clip name" }, one.text.name), named("div", { class: "clip small quiet" }, places)),
    cell("share", true, element("div", { class: "share" }, bar(one.share), one.text.share)),
    cell("count", true, one.size.toLocaleString("en")),
    cell("law", false, lawCells(one, law)),
    cell("power", false, power ? [named("div", { class: "clip", title: power.text.law }, power.text.law.split(" (")[0]), element("div", { class: "clip small quiet" }, `${powerEnds(power)}R² ${power.text.r2}`)] : "—"),
    cell("max", true, one.text.max_cost),
    cell("cost", true));
}

// The law in several features where there is one, and below it the law in the chosen feature alone.
function lawCells(one, law) {
  if (!law && !one.joint) return "—";
  const alone = !law || isFlat(law) ? "no law" : law.text.law;
  const below = one.joint ? `${shortName(trendFeature())} alone: ${alone}` : isFlat(law) ? "" : `${law.text.grows} ${law.text.slopes}`;
  return [named("div", { class: "clip", title: one.joint ? one.law.text.law : alone }, one.joint ? one.law.text.law : alone), element("div", { class: "clip small quiet", title: below }, below)];
}

const isFlat = (law) => !law.features.length;
const slopeOf = (law) => law && Math.max(0, ...Object.values(law.slope));

const powerEnds = (power) => (power.exponent_low == null ? "" : `(${power.exponent_low.toFixed(2)}–${power.exponent_high.toFixed(2)}) `);

// The columns that follow the slider: ranks, costs and shares at the chosen size.
function tellList({ name, size }) {
  const button = document.querySelector("#clusters th[data-column=cost] button");
  if (!button) return;
  button.textContent = name == null ? "predicted" : `at ${shortName(name)} = ${short(size)}`;
  for (const { one, element: row } of trendOrder) {
    row.querySelector(".t-then").replaceChildren(one.then == null ? "—" : String(one.then), one.then < one.rank ? element("span", { class: "rising", title: "ranks higher then" }, " ▲") : "");
    row.querySelector(".t-cost").replaceChildren(one.cost == null ? "—" : quantity(one.cost, ""), element("div", { class: "small quiet" }, shareText(one.part)));
  }
  const { column } = trendSorting;
  if (column && ["then", "cost"].includes(column.name)) sortTrend(column, trendSorting.down);
  filterTrend();
}

const shortName = (name) => (name.length > 24 ? `${name.slice(0, 23)}…` : name);

function sortTrend(column, down = trendSorting.column === column ? !trendSorting.down : Boolean(column.down)) {
  Object.assign(trendSorting, { column, down });
  trendOrder.sort((a, b) => compare(column.key(a.one), column.key(b.one), down));
  document.querySelector("#clusters tbody").append(...trendOrder.map((entry) => entry.element));
  for (const cell of document.querySelectorAll("#clusters th")) {
    cell.setAttribute("aria-sort", cell.dataset.column === column.name ? (down ? "descending" : "ascending") : "none");
  }
}

// A cluster is small if it has less than 2 % of every run and of the cost at the chosen size.
const isSmall = (one) => !one.costly && one.colour == null && !(one.part > 0.02);

function filterTrend() {
  const left = { clusters: 0, share: 0, part: 0 };
  let shown = 0;
  for (const { one, element: row } of trendOrder) {
    one.searched ??= [one.text.name, ...one.places, ...Object.values(one.laws).map((law) => law.text.law)].join("\n").toLowerCase();
    const small = !looking.all && !looking.filter && isSmall(one) && one.rank !== looking.rank;
    row.hidden = small || !one.searched.includes(looking.filter);
    shown += !row.hidden;
    if (small) Object.assign(left, { clusters: left.clusters + 1, share: left.share + one.share, part: left.part + (one.part ?? 0) });
  }
  const all = trend.clusters.length;
  const words = left.clusters ? [`${counted(left.clusters, "small cluster")} not shown, together ${shareText(left.share)} now, ${shareText(left.part)} then`]
    : [shown === all ? "" : `${shown.toLocaleString("en")} of ${all.toLocaleString("en")} shown`];
  const button = element("button", { type: "button", class: "link", onclick: showAllClusters }, "show all");
  document.getElementById("trend-shown").replaceChildren(...words, shown === all ? "" : button);
}

function showAllClusters() {
  Object.assign(looking, { all: true, filter: "" });
  document.getElementById("trend-text").value = "";
  filterTrend();
  remember();
}

function clickTrend(event) {
  const row = event.target.closest("#clusters tbody tr");
  if (row && !String(getSelection())) selectCluster(Number(row.dataset.rank));
}
