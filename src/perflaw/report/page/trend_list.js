// The list of clusters: one row each, by cost now or at the chosen size. Rows are built once; their later columns follow the slider.

const TREND_COLUMNS = [
  { name: "now", title: "now", key: (one) => one.rank, number: true },
  { name: "then", title: "then", key: (one) => one.then, number: true },
  { name: "cluster", title: "cluster", key: (one) => one.name },
  { name: "share", title: "share now", key: (one) => one.share, down: true, number: true },
  { name: "count", title: "lines", key: (one) => one.count, down: true, number: true },
  { name: "law", title: "law", key: (one) => one.laws[trendFeature()]?.slope, down: true },
  { name: "power", title: "power law of the paper", key: (one) => one.powers[trendFeature()]?.b, down: true },
  { name: "max", title: "most in a run", key: (one) => one.max, down: true, number: true },
  { name: "cost", title: "", key: (one) => one.cost, down: true, number: true },
];
// Lists longer than this start without their tail.
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
  const more = one.places.length + one.morePlaces - 1;
  const places = more > 0 ? `${one.places[0]} and ${more} more` : one.places[0] ?? "";
  return element("tr", { role: "row", tabindex: -1, "aria-selected": "false", "data-rank": one.rank },
    cell("now", true, clusterSwatch(one)),
    cell("then", true),
    element("td", { role: "gridcell", class: "t-cluster", title: [one.name, ...one.places].join("\n") },
      named("div", { class: "clip name" }, one.name), named("div", { class: "clip small quiet" }, places)),
    cell("share", true, element("div", { class: "share" }, bar(one.share), one.shareText)),
    cell("count", true, one.count.toLocaleString("en")),
    cell("law", false, lawCells(one, law)),
    cell("power", false, power ? [named("div", { class: "clip", title: power.text }, power.text.split(" (")[0]), element("div", { class: "clip small quiet" }, `${powerEnds(power)}R² ${power.r2}`)] : "—"),
    cell("max", true, one.maxText),
    cell("cost", true));
}

// Where several features explain it, their law; that in the chosen feature alone below.
function lawCells(one, law) {
  if (!law && !one.joint) return "—";
  const alone = !law || law.flat ? "no law" : law.text;
  const below = one.joint ? `${shortName(trendFeature())} alone: ${alone}` : law.flat ? "" : `${law.grows} ${law.slopes}`;
  return [named("div", { class: "clip", title: one.joint ? one.law.text : alone }, one.joint ? one.law.text : alone), element("div", { class: "clip small quiet", title: below }, below)];
}

const powerEnds = (power) => (power.low == null ? "" : `(${power.low.toFixed(2)}–${power.high.toFixed(2)}) `);

// What depends on the slider: ranks, costs, shares there; sorted anew only where the person lets go.
function tellList({ name, size }) {
  const button = document.querySelector("#clusters th[data-column=cost] button");
  if (!button) return;
  button.textContent = name == null ? "predicted" : `at ${shortName(name)} = ${short(size)}`;
  for (const { one, element: row } of trendOrder) {
    row.querySelector(".t-then").replaceChildren(one.then == null ? "—" : String(one.then), one.then < one.rank ? element("span", { class: "rising", title: "dearer then" }, " ▲") : "");
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

// Small clusters are those of less than 2 % of every run that are so at the chosen size as well.
const isSmall = (one) => !one.costly && one.colour == null && !(one.part > 0.02);

function filterTrend() {
  const left = { clusters: 0, share: 0, part: 0 };
  let shown = 0;
  for (const { one, element: row } of trendOrder) {
    one.searched ??= [one.name, ...one.places, ...Object.values(one.laws).map((law) => law.text)].join("\n").toLowerCase();
    const small = !looking.all && !looking.filter && isSmall(one) && one.rank !== looking.rank;
    row.hidden = small || !one.searched.includes(looking.filter);
    shown += !row.hidden;
    if (small) Object.assign(left, { clusters: left.clusters + 1, share: left.share + one.share, part: left.part + (one.part ?? 0) });
  }
  const all = trend.clusters.length;
  const words = left.clusters ? [`${plural(left.clusters, "small cluster")} not shown, together ${shareText(left.share)} now, ${shareText(left.part)} then`]
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
