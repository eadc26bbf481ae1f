// What a law leaves unexplained: residuals on the scale of its noise, and the distribution of responses with the laws' densities.

const noiseOf = (data) => data.document.scopes[0]?.law.noise;

function drawResiduals(data, feature, log) {
  const { scale, suffix } = unitOf(data);
  const model = modelOf(data);
  const own = model.several || !data.residual?.some((value) => value != null);
  const relative = own || noiseOf(data)?.distribution === "lognormal";
  const factor = relative ? 1 : scale;
  const y = own ? standardised(data, model) : (data.residual ?? []).map((value) => (value == null ? null : value * factor));
  const fitted = view.against === "fitted" || feature == null;
  const x = !fitted ? horizontal(data, feature) : own ? meansOf(data, model) : fittedValues(data, relative, scale);
  const unit = relative ? "" : suffix;
  const hover = `%{y:.3~g} at %{x:.4~s}<br>%{customdata}<extra></extra>`;
  const across = log && positive(x);
  const words = fitted ? `fitted ${shortened(data.document.metric)} per call` : shortened(feature);
  const horizontalAxis = axis(words, across, fitted ? suffix : "");
  if (!fitted) horizontalAxis.range = rangeOf("law-chart", horizontalAxis.type);
  const vertical = axis(own ? "residual / σ of its law" : relative ? "log y − log law" : "y − law", false, unit);
  const traces = pointTraces(data, null, x, y, hover);
  drawChart("residual-chart", traces, layout(230, horizontalAxis, vertical, scaleLines(own ? 1 : (noiseOf(data)?.scale ?? 0) * factor)));
}

// The range of the law's chart, so that both charts stand one above the other.
function rangeOf(id, type) {
  const other = document.getElementById(id).layout.xaxis;
  return other.type === type && other.range ? [...other.range] : undefined;
}

// A residual is the distance of a point from the law: both together give the law's value.
function fittedValues(data, relative, scale) {
  return data.y.map((value, i) => {
    const residual = data.residual?.[i];
    if (residual == null) return null;
    return (relative ? value * Math.exp(-residual) : value - residual) * scale;
  });
}

// Residuals of several laws in units of their noise, which differs between them.
function standardised(data, model) {
  return data.y.map((y, i) => {
    const law = model.scopes[model.member[i]]?.law;
    if (!law || y == null) return null;
    const [mean, spread] = argumentsAt(law, model.rows[i]);
    const residual = { LogNorm: () => (Math.log(y / mean) + spread ** 2 / 2) / spread, Norm: () => (y - mean) / spread, Exp: () => y / mean - 1,
      Binom: () => (y - mean * spread) / Math.sqrt(mean * spread * (1 - spread)) }[law.name]();
    return finiteOr(residual);
  });
}

const meansOf = (data, model) => data.y.map((_, i) => {
  const law = model.scopes[model.member[i]]?.law;
  return law ? finiteOr(meanAt(law, model.rows[i]) * data.scale) : null;
});

// Zero, and two standard deviations of the noise on either side.
function scaleLines(sigma) {
  const level = (y, dash) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, layer: "below",
    line: { color: colour(dash === "solid" ? "law" : "line"), width: dash === "solid" ? 1.5 : 1, dash } });
  const note = (y, text) => ({ xref: "paper", x: 1, y, xanchor: "right", yanchor: "bottom", showarrow: false, text,
    font: { size: 10, color: colour("quiet") } });
  if (!(sigma > 0)) return { shapes: [level(0, "solid")] };
  return { shapes: [level(0, "solid"), level(2 * sigma, "dot"), level(-2 * sigma, "dot")],
    annotations: [note(2 * sigma, "+2σ"), note(-2 * sigma, "−2σ")] };
}

// The distribution of the responses: a histogram, and over it the density of every part (Freud §3.3: mixtures).
const BINS = 48;
const FINE = 6; // points of a density's line in a bar of the histogram

// Densities are drawn for mixtures: a chart over features cannot separate their parts.
const hasDensity = (data) => modelOf(data).scopes.some((scope) => scope.probability < 1) && data.y.length > 1;

function drawDensity(data, log) {
  const values = data.y.filter((value) => value != null && (!log || value > 0));
  if (!values.length) return;
  const to = log ? Math.log10 : (value) => value;
  const back = log ? (at) => 10 ** at : (at) => at;
  const [low, high] = widened(values.map(to));
  const model = modelOf(data);
  const width = (high - low) / BINS;
  // A point of a line stands for half a bar on either side, as a bar of the histogram does.
  const grid = Array.from({ length: BINS * FINE + 1 }, (_, i) => low + (width * i) / FINE).map((at) =>
    ({ at: back(at), from: back(at - width / 2), to: back(at + width / 2) }));
  const traces = [histogram(data, values.map(to), low, width, back), ...model.scopes.filter((scope) => scope.law && scope.probability > 0).map((scope) =>
    partTrace(data, model, scope, grid))];
  const { scale, suffix } = unitOf(data);
  const across = { ...axis(`${shortened(data.document.metric)} per call`, log, suffix), range: log ? [low + Math.log10(scale), high + Math.log10(scale)] : [low * scale, high * scale] };
  const up = { ...axis("share of points", false), rangemode: "tozero", tickformat: ".0%" };
  drawChart("density-chart", traces, layout(230, across, up, { showlegend: true, barmode: "overlay", bargap: 0 }));
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

// The part's share at the features of every point where its scope holds, which is comparable with the histogram.
function partTrace(data, model, scope, grid) {
  const mine = model.rows.filter((row) => scope.holds(row));
  const some = mine.filter((_, i) => i % Math.ceil(mine.length / 200) === 0);
  const share = (scope.probability * mine.length) / (model.rows.length * Math.max(1, some.length));
  const asked = some.map((row) => argumentsAt(scope.law, row)); // once a point, not once a place
  const below = (y, args) => formulaAt(scope.law, "cdf", args, { y: y / scope.law.factor });
  const y = grid.map(({ from, to }) => share * asked.reduce((sum, args) => sum + (below(to, args) - below(from, args) || 0), 0));
  const { scale } = unitOf(data);
  return { type: "scatter", mode: "lines", x: grid.map(({ at }) => at * scale), y, name: scopeName(scope), showlegend: true, fill: "tozeroy",
    fillcolor: faded(scope.colour, 0.18), line: { color: scope.colour, width: 2 },
    hovertemplate: `${scopeName(scope)}: %{y:.1%} a bar<extra></extra>` };
}
