// Clusters of locations as the page asks them: what each costs at any size, by its law in one feature.

const trend = report.trend;
// What is chosen in the trend view; `sizes` is by feature.
const looking = { rank: null, feature: null, sizes: {}, axes: "log", residuals: "law", others: true, filter: "", small: false, file: null };

const clusterOf = (rank) => trend.clusters[rank - 1];
const featureOf = (name) => trend.features.find((one) => one.name === name);

// The feature all clusters are looked at in: the chosen one, else the one most of the cost depends on.
function trendFeature() {
  if (looking.feature && featureOf(looking.feature)) return looking.feature;
  const weight = (name) => trend.clusters.reduce((sum, one) => sum + (one.best === name ? one.share : 0), 0);
  const names = trend.features.map((one) => one.name);
  return names.reduce((best, name) => (weight(name) > weight(best) ? name : best), names[0] ?? null);
}

// From the smallest value seen to a hundred times the largest, and wherever the person asked.
function sizeRange(name) {
  const { low, high, values } = featureOf(name);
  if (high <= 0) return [low, high];
  const least = low > 0 ? low : Math.min(...values.filter((value) => value > 0), high);
  return [least, Math.max(high * 100, (trend.at[name] ?? 0) * 2)];
}

// Where the person asks; else where perflaw did; a feature that it was not asked at stays at its median.
const trendSize = (name) => looking.sizes[name] ?? trend.at[name] ?? middle(name);

function middle(name) {
  const known = (featureOf(name)?.values ?? []).filter((value) => value != null).sort((a, b) => a - b);
  return known[known.length >> 1] ?? NaN;
}

// The law, ready to be asked; null where there is none that the page can ask.
function lawOf(cluster, name) {
  cluster.read ??= {};
  if (!(name in cluster.read)) cluster.read[name] = cluster.laws[name] ? lawOfTree(cluster.laws[name].tree) : null;
  return cluster.read[name];
}

// The law in whatever features explain most.
function bestLaw(cluster) {
  cluster.bestRead ??= [cluster.law ? lawOfTree(cluster.law.tree) : null];
  return cluster.bestRead[0];
}

// Cost at a size of one feature, the others held where they are asked; by the best law, else by that in the feature alone.
function costAt(cluster, name, size) {
  const law = name == null ? null : bestLaw(cluster) ?? lawOf(cluster, name);
  const power = trend.paper ? cluster.powers[name] : null;
  const cost = power ? power.a * size ** power.b : law ? meanAt(law, { ...heldSizes(), [name]: size }) : NaN;
  return Number.isFinite(cost) ? cost : null;
}

const heldSizes = () => Object.fromEntries(trend.features.map(({ name }) => [name, trendSize(name)]));

// All clusters asked at the chosen size: their cost, share of the whole and rank there.
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

// Whole numbers as they are, large ones with two digits.
const counted = (value) => (value < 9999.5 ? Math.round(value).toLocaleString("en") : quantity(value, ""));

const shareText = (part) => (part == null ? "—" : part > 0 && part < 0.0005 ? "<0.1\u00a0%" : `${(part * 100).toFixed(part > 0 && part < 0.0095 ? 1 : 0)}\u00a0%`);

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
  return Object.fromEntries(["meanLow", "meanHigh", "newLow", "newHigh"].map((end) => [end, between(curve[end])]));
}
