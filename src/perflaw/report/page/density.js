// How the responses are spread: a histogram, and over it what the laws say, part by part (Freud §3.3: mixtures).

const BINS = 48;
const FINE = 6; // points of a density's line in a bar of the histogram

// Drawn where the laws are parts of a mixture: a chart over features cannot tell them apart, their densities can.
const hasDensity = (data) => modelOf(data).scopes.some((scope) => scope.probability < 1) && data.y.length > 1;

function drawDensity(data, log) {
  const values = data.y.filter((value) => value != null && (!log || value > 0));
  if (!values.length) return;
  const to = log ? Math.log10 : (value) => value;
  const back = log ? (at) => 10 ** at : (at) => at;
  const [low, high] = widened(values.map(to));
  const model = modelOf(data);
  const width = (high - low) / BINS;
  // Each point of a line stands for what lies within half a bar either side, as a bar of the histogram does.
  const grid = Array.from({ length: BINS * FINE + 1 }, (_, i) => low + (width * i) / FINE).map((at) =>
    ({ at: back(at), from: back(at - width / 2), to: back(at + width / 2) }));
  const traces = [histogram(data, values.map(to), low, width, back), ...model.scopes.filter((scope) => scope.law && scope.probability > 0).map((scope) =>
    partTrace(data, model, scope, grid))];
  const { scale, suffix } = unitOf(data);
  const across = { ...axis(shortened(data.metric), log, suffix), range: log ? [low + Math.log10(scale), high + Math.log10(scale)] : [low * scale, high * scale] };
  const up = { ...axis("share of points", false), rangemode: "tozero", tickformat: ".0%" };
  Plotly.react("density-chart", traces, layout(230, across, up, { showlegend: true, barmode: "overlay", bargap: 0 }), CONFIG);
}

function widened(values) {
  const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  const pad = 0.06 * (high - low) || Math.abs(high) * 0.1 || 1;
  return [low - pad, high + pad];
}

function histogram(data, places, low, width, back) {
  const counts = new Array(BINS).fill(0);
  for (const place of places) counts[Math.min(BINS - 1, Math.max(0, Math.floor((place - low) / width)))] += 1;
  const { scale, suffix } = unitOf(data);
  const x = counts.flatMap((_, i) => [back(low + i * width) * scale, back(low + (i + 1) * width) * scale]);
  const y = counts.flatMap((count) => [count / places.length, count / places.length]);
  return { type: "scatter", mode: "lines", x, y, fill: "tozeroy", line: { width: 1, color: colour("line"), shape: "linear" }, fillcolor: colour("grid"),
    name: "points", showlegend: true, hovertemplate: `%{y:.1%} of the points near %{x:.3~s}${suffix}<extra></extra>` };
}

// The part's share at the features of every point where its scope holds: comparable with the histogram whatever they are.
function partTrace(data, model, scope, grid) {
  const mine = model.rows.filter((row) => scope.holds(row));
  const some = mine.filter((_, i) => i % Math.ceil(mine.length / 200) === 0);
  const share = (scope.probability * mine.length) / (model.rows.length * Math.max(1, some.length));
  const { cdf } = DISTRIBUTIONS[scope.law.name];
  const asked = some.map((row) => argumentsAt(scope.law, row)); // once a point, not once a place
  const { factor } = scope.law;
  const y = grid.map(({ from, to }) => share * asked.reduce((sum, args) => sum + (cdf(to / factor, ...args) - cdf(from / factor, ...args) || 0), 0));
  const { scale } = unitOf(data);
  return { type: "scatter", mode: "lines", x: grid.map(({ at }) => at * scale), y, name: scopeName(scope), showlegend: true, fill: "tozeroy",
    fillcolor: faded(scope.colour, 0.18), line: { color: scope.colour, width: 2 },
    hovertemplate: `${scopeName(scope)}: %{y:.1%} a bar<extra></extra>` };
}
