// The trend view: built once a feature; selection, keys, address.

let trendShown = false;

function startTrend() {
  document.addEventListener("keydown", onTrendKey);
  buildTrend();
}

function buildTrend() {
  document.getElementById("trend").replaceChildren(
    element("p", { class: "recorded" }, trend.summary), ...trend.notes.map((note) => named("p", { class: "quiet note" }, note)),
    trend.clusters.length ? [sizePanel(), listPanel(), element("section", { id: "cluster", "aria-label": "Selected cluster" }), sourcePanel()].filter(Boolean)
      .reduce((box, part) => (box.append(part), box), element("div", { id: "trend-parts" })) : element("p", { class: "reason" }, "No count varies over the runs: record several sizes of the work."));
  Object.assign(looking, { file: null });
  if (trendShown) drawTrend();
}

// Everything that carries colours or depends on the size.
function drawTrend() {
  if (!trendShown || !trend.clusters.length) return;
  tellSizes();
  drawShares();
  if (looking.rank == null) selectCluster(trend.clusters[0].rank, { link: false });
  else showSelected({ scroll: false });
}

function selectCluster(rank, { link = true, focus = false, open = true } = {}) {
  if (!clusterOf(rank)) return;
  looking.rank = rank;
  filterTrend();
  showSelected({ focus, open });
  if (link) rememberNow();
}

function showSelected({ focus = false, open = true, scroll = true } = {}) {
  for (const { one, element: row } of trendOrder) {
    row.setAttribute("aria-selected", one.rank === looking.rank);
    row.tabIndex = one.rank === looking.rank ? 0 : -1;
    if (one.rank !== looking.rank) continue;
    if (focus) row.focus({ preventScroll: true });
    if (scroll) rowIntoView(row, document.getElementById("trend-scroll"));
  }
  showCluster(looking.rank);
  const [spot] = clusterOf(looking.rank).spots.filter(([file]) => trend.files[file].packed);
  if (open && spot) openFile(...spot);
  else if (looking.file != null) markLines();
  else if (trend.files.length) openFile(0);
}

function onTrendKey(event) {
  if (!trendShown || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape" && event.target.id === "trend-text") { event.target.value = looking.filter = ""; filterTrend(); return; }
  if (event.target.closest("input, select, textarea, summary, .js-plotly-plot")) return;
  if (event.key === "/") { event.preventDefault(); document.getElementById("trend-text").focus(); return; }
  if (event.key === "n" || event.key === "p") { step(event.key === "n" ? 1 : -1); return; }
  const way = STEPS[event.key];
  if (!way || event.target.closest("#listing") || (Math.abs(way) !== 1 && !event.target.closest("#clusters"))) return;
  const rows = trendOrder.filter((entry) => !entry.element.hidden);
  const here = rows.findIndex((entry) => entry.one.rank === looking.rank);
  event.preventDefault();
  if (rows.length) selectCluster(rows[Math.min(rows.length - 1, Math.max(0, here + way))].one.rank, { focus: true });
}

// What the address says of this view; a link shows the same.
function trendAddress() {
  const parts = [["view", "trend"]];
  if (looking.rank != null) parts.push(["cluster", linkable(clusterOf(looking.rank).key)]);
  if (looking.feature) parts.push(["feature", linkable(looking.feature)]);
  for (const [name, size] of Object.entries(looking.sizes)) parts.push([`size.${linkable(name)}`, String(size)]);
  for (const [name, usual] of [["axes", "log"], ["residuals", "law"], ["filter", ""]]) if (looking[name] !== usual) parts.push([name, linkable(looking[name])]);
  if (trendSorting.column) parts.push(["sort", (trendSorting.down ? "-" : "") + trendSorting.column.name]);
  if (view.theme !== "auto") parts.push(["theme", view.theme]);
  return parts;
}

const trendAsked = (parts) => Boolean(report.trend) && (parts.get("view") === "trend" || (!report.rows.length && !varianceAsked(parts)));

function followTrend(parts) {
  if (["auto", "light", "dark"].includes(parts.get("theme"))) view.theme = parts.get("theme");
  if (featureOf(parts.get("feature"))) looking.feature = parts.get("feature");
  if (["log", "linear"].includes(parts.get("axes"))) looking.axes = parts.get("axes");
  if (["law", "power"].includes(parts.get("residuals"))) looking.residuals = parts.get("residuals");
  looking.filter = (parts.get("filter") ?? "").toLowerCase();
  for (const [name, value] of parts) {
    if (name.startsWith("size.") && featureOf(name.slice(5)) && Number(value) > 0) looking.sizes[name.slice(5)] = Number(value);
  }
  const key = parts.get("cluster");
  looking.rank = trend.clusters.find((one) => linkable(one.key) === key)?.rank ?? looking.rank;
  for (const button of document.querySelectorAll("[data-choice=theme] button")) button.setAttribute("aria-pressed", button.dataset.value === view.theme);
  trendShown = false; // built first, drawn once
  buildTrend();
  setTheme(view.theme);
  showView("trend");
  const sort = parts.get("sort"), column = TREND_COLUMNS.find((one) => one.name === sort?.replace(/^-/, ""));
  if (column && trend.clusters.length) sortTrend(column, sort.startsWith("-"));
}
