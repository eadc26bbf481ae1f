// The trend view: clusters with their costs at any size, what is selected, keys and address.

const trend = report.trend;
// A cluster whose best law is in several features.
for (const one of trend?.clusters ?? []) one.joint = one.law?.features.length > 1;
// The choices in the trend view; `sizes` is by feature.
const looking = { rank: null, feature: null, sizes: {}, axes: "log", residuals: "law", others: true, filter: "", small: false, file: null };

const clusterOf = (rank) => trend.clusters[rank - 1];
const featureOf = (name) => trend.features.find((one) => one.name === name);

// The feature of the axes: the chosen one, else the one that most of the cost depends on.
function trendFeature() {
  if (looking.feature && featureOf(looking.feature)) return looking.feature;
  const weight = (name) => trend.clusters.reduce((sum, one) => sum + (one.best === name ? one.share : 0), 0);
  const names = trend.features.map((one) => one.name);
  return names.reduce((best, name) => (weight(name) > weight(best) ? name : best), names[0] ?? null);
}

// From the smallest value seen to a hundred times the largest, and at least to twice the point asked for.
function sizeRange(name) {
  const { low, high, values } = featureOf(name);
  if (high <= 0) return [low, high];
  const least = low > 0 ? low : Math.min(...values.filter((value) => value > 0), high);
  return [least, Math.max(high * 100, (trend.at[name] ?? 0) * 2)];
}

// The person's size, else the point of the predictions, else the feature's median.
const trendSize = (name) => looking.sizes[name] ?? trend.at[name] ?? middle(name);

function middle(name) {
  const known = (featureOf(name)?.values ?? []).filter((value) => value != null).sort((a, b) => a - b);
  return known[known.length >> 1] ?? NaN;
}

// The law in a feature, ready to be evaluated; null without a tree.
function lawOf(cluster, name) {
  cluster.read ??= {};
  if (!(name in cluster.read)) cluster.read[name] = cluster.laws[name] ? lawOfTree(cluster.laws[name].tree) : null;
  return cluster.read[name];
}

// The best law over all features.
function bestLaw(cluster) {
  cluster.bestRead ??= [cluster.law ? lawOfTree(cluster.law.tree) : null];
  return cluster.bestRead[0];
}

// Cost at a size of one feature, the others at their own sizes: by the best law, else by the law in this feature.
function costAt(cluster, name, size) {
  const law = name == null ? null : bestLaw(cluster) ?? lawOf(cluster, name);
  const power = trend.paper ? cluster.powers[name] : null;
  const cost = power ? power.coefficient * size ** power.exponent : law ? meanAt(law, { ...heldSizes(), [name]: size }) : NaN;
  return Number.isFinite(cost) ? cost : null;
}

const heldSizes = () => Object.fromEntries(trend.features.map(({ name }) => [name, trendSize(name)]));

// Cost of all clusters at the chosen size, with their shares of the whole and their ranks there.
function askClusters() {
  const name = trendFeature();
  const size = trendSize(name);
  for (const one of trend.clusters) one.cost = costAt(one, name, size);
  const asked = trend.clusters.filter((one) => one.cost != null).sort((a, b) => b.cost - a.cost);
  const whole = asked.reduce((sum, one) => sum + one.cost, 0);
  for (const one of trend.clusters) one.then = one.part = null;
  asked.forEach((one, i) => { one.then = i + 1; one.part = whole > 0 ? one.cost / whole : 0; });
  return { name, size, whole, asked };
}

const ownColour = (cluster) => (cluster.colour == null ? colour("other") : colour(`c${cluster.colour}`));

// The colour of a cluster as a square; the style knows the colours of both themes.
const clusterSwatch = (cluster) => element("span", { class: `chip c${cluster.colour ?? "-other"}`, "aria-hidden": "true" }, String(cluster.rank));

const timesSeen = (name, size) => {
  const { low, high } = featureOf(name);
  if (size > high) return `${short(size / high)} times the largest seen`;
  return size < low ? "smaller than any seen" : "within the data";
};

// Bands at a size, between two points of the learner's curve on logarithms; null where it does not reach.
function bandsAt(curve, size) {
  const right = curve?.x.findIndex((x) => x >= size) ?? -1;
  if (right < 0 || (right === 0 && curve.x[0] !== size)) return null;
  const left = Math.max(0, right - 1);
  const part = right === left ? 0 : Math.log(size / curve.x[left]) / Math.log(curve.x[right] / curve.x[left]);
  const between = (values) => {
    const [a, b] = [values[left], values[right]];
    return a > 0 && b > 0 ? a * (b / a) ** part : a + (b - a) * part;
  };
  return Object.fromEntries(["mean_low", "mean_high", "new_low", "new_high"].map((end) => [end, between(curve[end])]));
}

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
}

// Draws everything that has colours or depends on the size.
function drawTrend() {
  if (!isShown("trends") || !trend.clusters.length) return;
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
  if (!isShown("trends") || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape" && event.target.id === "trend-text") { event.target.value = looking.filter = ""; filterTrend(); return; }
  if (event.target.closest("input, select, textarea, summary, .svg-chart")) return;
  if (event.key === "/") { event.preventDefault(); document.getElementById("trend-text").focus(); return; }
  if (event.key === "n" || event.key === "p") { step(event.key === "n" ? 1 : -1); return; }
  const way = STEPS[event.key];
  if (!way || event.target.closest("#listing") || (Math.abs(way) !== 1 && !event.target.closest("#clusters"))) return;
  const rows = trendOrder.filter((entry) => !entry.element.hidden);
  const here = rows.findIndex((entry) => entry.one.rank === looking.rank);
  event.preventDefault();
  if (rows.length) selectCluster(rows[Math.min(rows.length - 1, Math.max(0, here + way))].one.rank, { focus: true });
}

// The choices of this view in the address.
function trendAddress() {
  const parts = [];
  if (looking.rank != null) parts.push(["cluster", linkable(clusterOf(looking.rank).representative)]);
  if (looking.feature) parts.push(["feature", linkable(looking.feature)]);
  for (const [name, size] of Object.entries(looking.sizes)) parts.push([`size.${linkable(name)}`, String(size)]);
  for (const [name, usual] of [["axes", "log"], ["residuals", "law"], ["filter", ""]]) if (looking[name] !== usual) parts.push([name, linkable(looking[name])]);
  if (trendSorting.column) parts.push(["sort", (trendSorting.down ? "-" : "") + trendSorting.column.name]);
  return parts;
}

function followTrend(parts) {
  if (featureOf(parts.get("feature"))) looking.feature = parts.get("feature");
  if (["log", "linear"].includes(parts.get("axes"))) looking.axes = parts.get("axes");
  if (["law", "power"].includes(parts.get("residuals"))) looking.residuals = parts.get("residuals");
  looking.filter = (parts.get("filter") ?? "").toLowerCase();
  for (const [name, value] of parts) {
    if (name.startsWith("size.") && featureOf(name.slice(5)) && Number(value) > 0) looking.sizes[name.slice(5)] = Number(value);
  }
  const key = parts.get("cluster");
  looking.rank = trend.clusters.find((one) => linkable(one.representative) === key)?.rank ?? looking.rank;
  buildTrend();
  const sort = parts.get("sort"), column = TREND_COLUMNS.find((one) => one.name === sort?.replace(/^-/, ""));
  if (column && trend.clusters.length) sortTrend(column, sort.startsWith("-"));
}
