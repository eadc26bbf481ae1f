// The law's chart: points, means, the interval of the mean (dark) and of a new run (light), scopes and what else is known of them.

function drawLaw(data, feature, log, { old = null, mark = null } = {}) {
  const { scale, suffix } = unitOf(data);
  const x = horizontal(data, feature);
  const y = data.y.map((value) => value * scale);
  const lines = linesOf(data, feature, x);
  const model = modelOf(data);
  const hover = `%{y:.3~s}${suffix} at %{x:.4~s}<br>%{customdata}<extra></extra>`;
  const bands = lines.flatMap((line) => (!model.several ? bandTraces(line, log) : bandsShown(model) ? scopeBand(line, log) : []));
  const before = oldTraces(data, old, feature, lines, suffix);
  const traces = [...bands, ...pointTraces(data, feature, x, y, hover), ...before,
    ...alternativeTraces(data, feature, lines), ...lines.flatMap((line) => meanTraces(line, suffix, model.several)), ...markTraces(mark, suffix)];
  traces.forEach((trace) => (trace.showlegend ??= trace.mode === "markers"));
  const vertical = axis(shortened(data.metric), log, suffix);
  const sight = inSight(x, lines[0], log);
  const seen = (xs, ys) => ys.filter((_, i) => !sight || xs[i] <= sight[1]);
  const means = [...lines.flatMap((line) => seen(line.x, line.mean)), ...before.flatMap((trace) => seen(trace.x, trace.y))];
  const range = verticalRange([...y, ...means], log);
  if (range) vertical.range = range;
  const words = feature == null ? "order of the points" : shortened(feature);
  const more = {
    showlegend: model.several || new Set(data.run).size > 1 || view.alternatives,
    shapes: [...regionShapes(lines, log), ...breakpointShapes(data, feature, log), ...(model.several ? [] : beyond(lines[0], log))],
    annotations: [...breakpointWords(data, feature, log), ...(model.several ? [] : beyondWords(lines[0], log))],
  };
  Plotly.react("law-chart", traces, layout(400, { ...axis(words, log), ...(sight && { range: sight }) }, vertical, more), CONFIG);
  document.getElementById("chart-note").textContent = chartNote(data, feature, log);
}

// The law over this feature as the learner drew it; for a law without features a level line; otherwise none.
function lawLine(data, feature, x, scale) {
  const curve = data.curves.find((one) => one.feature === feature);
  const scaled = (values) => values.map((value) => (value == null ? null : value * scale));
  if (curve) {
    const { feature: _, range, x: grid, ...columns } = curve;
    return { x: grid, range, ...Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, scaled(values)])) };
  }
  const known = x.filter((value) => value != null);
  if (!data.constant || !known.length) return null;
  const ends = [Math.min(...known), Math.max(...known)];
  // One value of the feature: a level line still needs a length to be seen.
  if (ends[0] === ends[1]) ends.splice(0, 2, ends[0] - Math.abs(ends[0]) * 0.1 - 1e-9, ends[1] + Math.abs(ends[1]) * 0.1 + 1e-9);
  const level = Object.entries(data.constant).map(([name, value]) => [name, scaled([value, value])]);
  return { x: ends, range: null, ...Object.fromEntries(level) };
}

function bandTraces(line, log) {
  const noise = line.meanLow ? `${CONFIDENCE.words} of a new run` : `${CONFIDENCE.words} of calls, by the law's noise`;
  return [...band(line, "newLow", "newHigh", colour("new"), { name: noise, legendrank: 4 }, log),
    ...band(line, "meanLow", "meanHigh", colour("band"), { name: `${CONFIDENCE.words} of the mean`, legendrank: 3 }, log)];
}

// Bands of many laws cover each other and the points: then only when asked for.
const bandsShown = (model) => view.bands ?? model.scopes.length <= MOST_BANDS;
const MOST_BANDS = 3;

const scopeBand = (line, log) => band(line, "newLow", "newHigh", faded(line.scope.colour, 0.13), { legendgroup: `scope ${line.scope.index}` }, log)
  .map((trace) => ({ ...trace, showlegend: false }));

// Two invisible lines and the area between them. A lower end of zero cannot be drawn on a log axis: far below instead.
function band(line, low, high, filled, named, log) {
  if (!line[low] || !line[high]) return [];
  const floor = Math.min(...line.mean.filter((value) => value > 0)) / 1e6;
  const bottom = log ? line[low].map((value) => Math.max(value, floor)) : line[low];
  const edge = { type: "scatter", mode: "lines", x: line.x, line: { width: 0 }, hoverinfo: "skip", showlegend: false, ...named };
  return [{ ...edge, y: bottom }, { ...edge, y: line[high], fill: "tonexty", fillcolor: filled, showlegend: true }];
}

// Solid where there is data, dashed beyond it. Neighbouring pieces share a point, so that the line has no gap.
function meanTraces(line, suffix, several) {
  const [low, high] = line.range ?? [-Infinity, Infinity];
  const inside = line.x.map((x) => x >= low && x <= high);
  const name = several ? scopeName(line.scope) : "law";
  const piece = (keep, dash, more) => ({
    type: "scatter", mode: "lines", x: line.x, y: line.mean.map((value, i) => (keep(i) ? value : null)), showlegend: false,
    line: { color: several ? line.scope.colour : colour("law"), width: 2, dash }, ...(several && { legendgroup: `scope ${line.scope.index}` }),
    hovertemplate: `${name}: %{y:.3~s}${suffix} at %{x:.4~s}<extra></extra>`, ...more,
  });
  const beside = (i) => !inside[i] || (i > 0 && !inside[i - 1]) || (i + 1 < inside.length && !inside[i + 1]);
  return [piece((i) => inside[i], "solid", { name, legendrank: several ? 10 + line.scope.index : 1, showlegend: line.first }),
    ...(inside.every(Boolean) ? [] : [piece(beside, "dash", { name: several ? name : "law, extrapolated", legendrank: 2, showlegend: !several && line.first })])];
}

function scopeName(scope) {
  if (scope.probability >= 1) return shortened(scope.label);
  return scope.condition ? `${shortened(scope.label)} · ${percentText(scope.probability)}` : `${percentText(scope.probability)} of the calls`;
}

const percentText = (share) => `${(share * 100).toLocaleString("en", { maximumSignificantDigits: 2 })} %`;

// What the person asked for, as a point with its interval.
function markTraces(mark, suffix) {
  if (!mark) return [];
  const ends = mark.low == null ? {} : { error_y: { type: "data", symmetric: false, array: [mark.high - mark.y], arrayminus: [mark.y - mark.low], color: colour("accent") } };
  return [{ type: "scatter", mode: "markers", x: [mark.x], y: [mark.y], name: "asked", showlegend: false, ...ends,
    marker: { size: 11, symbol: "diamond-open", color: colour("accent"), line: { width: 2 } },
    hovertemplate: `asked: %{y:.3~s}${suffix} at %{x:.4~s}<extra></extra>` }];
}

// The part of the axis beyond what the law was learnt on, shaded.
function beyond(line, log) {
  return beyondEnds(line, log).map(([x0, x1]) => ({
    type: "rect", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1, layer: "below", line: { width: 0 }, fillcolor: colour("beyond"),
  }));
}

function beyondEnds(line, log) {
  if (!line?.range) return [];
  const first = line.x[0], last = line.x.at(-1);
  const [low, high] = line.range;
  return [...(first < low && !(log && first <= 0) ? [[first, low]] : []), ...(last > high ? [[high, last]] : [])];
}

function beyondWords(line, log) {
  return beyondEnds(line, log).slice(-1).map(([x0]) => ({
    xref: "x", yref: "paper", x: log ? Math.log10(x0) : x0, y: 0.02, xanchor: "left", yanchor: "bottom", showarrow: false,
    text: "beyond the data", font: { size: 11, color: colour("quiet") },
  }));
}
