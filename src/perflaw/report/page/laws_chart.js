// The chart of a law: points, means, intervals of the mean (dark) and of a new run (light), scopes and breakpoints.

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
  const vertical = axis(`${shortened(data.document.metric)} per call`, log, suffix);
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
  drawChart("law-chart", traces, layout(400, { ...axis(words, log), ...(sight && { range: sight }) }, vertical, more));
  document.getElementById("chart-note").textContent = chartNote(data, feature, log);
}

// The law over this feature as the learner drew it; a level line for a law without features; otherwise null.
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
  // With one value of the feature, a level line still needs a length to be seen.
  if (ends[0] === ends[1]) ends.splice(0, 2, ends[0] - Math.abs(ends[0]) * 0.1 - 1e-9, ends[1] + Math.abs(ends[1]) * 0.1 + 1e-9);
  const level = Object.entries(data.constant).map(([name, value]) => [name, scaled([value, value])]);
  return { x: ends, range: null, ...Object.fromEntries(level) };
}

function bandTraces(line, log) {
  const noise = line.mean_low ? `${CONFIDENCE.words} of a new run` : `${CONFIDENCE.words} of calls, by the law's noise`;
  return [...band(line, "new_low", "new_high", colour("new"), { name: noise, legendrank: 4 }, log),
    ...band(line, "mean_low", "mean_high", colour("band"), { name: `${CONFIDENCE.words} of the mean`, legendrank: 3 }, log)];
}

// Bands of many laws cover each other and the points: these are drawn only when the person asks for them.
const bandsShown = (model) => view.bands ?? model.scopes.length <= MOST_BANDS;
const MOST_BANDS = 3;

const scopeBand = (line, log) => band(line, "new_low", "new_high", faded(line.scope.colour, 0.13), { legendgroup: `scope ${line.scope.index}` }, log)
  .map((trace) => ({ ...trace, showlegend: false }));

// Two invisible lines and the area between them. A log axis cannot show a lower end of zero: it is drawn far below.
function band(line, low, high, filled, named, log) {
  if (!line[low] || !line[high]) return [];
  const floor = Math.min(...line.mean.filter((value) => value > 0)) / 1e6;
  const bottom = log ? line[low].map((value) => Math.max(value, floor)) : line[low];
  const edge = { type: "scatter", mode: "lines", x: line.x, line: { width: 0 }, hoverinfo: "skip", showlegend: false, ...named };
  return [{ ...edge, y: bottom }, { ...edge, y: line[high], fill: "tonexty", fillcolor: filled, showlegend: true }];
}

// Solid within the data, dashed beyond. Neighbouring pieces share a point, so that the line has no gap.
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

// The point that the person asked for, with its interval.
function markTraces(mark, suffix) {
  if (!mark) return [];
  const ends = mark.low == null ? {} : { error_y: { type: "data", symmetric: false, array: [mark.high - mark.y], arrayminus: [mark.y - mark.low], color: colour("accent") } };
  return [{ type: "scatter", mode: "markers", x: [mark.x], y: [mark.y], name: "asked", showlegend: false, ...ends,
    marker: { size: 11, symbol: "diamond-open", color: colour("accent"), line: { width: 2 } },
    hovertemplate: `asked: %{y:.3~s}${suffix} at %{x:.4~s}<extra></extra>` }];
}

// The part of the axis beyond the data of the law, shaded.
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

// Lines over one feature: the learner's own curve where there is one, else the law's expression along the axis.
// Every line is {x, mean, …, scope}: one for each piece of the axis on which its scope holds.
function linesOf(data, feature, x) {
  const model = modelOf(data);
  const drawn = !model.several && !overridden(model) ? lawLine(data, feature, x, data.scale) : null;
  if (drawn) return [{ ...drawn, scope: model.scopes[0], first: true }];
  if (feature == null) return [];
  const [low, high] = reach(data, feature, x);
  // A scope none of whose points has the feature (such as the length of a number) has no place on that axis.
  const placed = (scope) => scope.law && (!scope.points || scope.typical[feature] != null);
  return model.scopes.filter(placed).flatMap((scope) => scopeLines(data, scope, feature, low, high));
}

const overridden = (model) => model.asked.means.some((name) => name in view.held);

// How far along the axis laws are drawn: as far as the learner drew them; laws that the page draws, to ten times the data.
function reach(data, feature, x) {
  const curve = data.curves.find((one) => one.feature === feature);
  const known = x.filter((value) => typeof value === "number");
  const low = Math.min(...known), high = Math.max(...known);
  if (curve) return [Math.min(low, curve.x[0]), Math.max(high, curve.x.at(-1))];
  const farther = high > 0 && modelOf(data).asked.means.includes(feature) ? high * 10 : high;
  return farther > low ? [low, farther] : [low - Math.abs(low) * 0.1 - 1e-9, low + Math.abs(low) * 0.1 + 1e-9];
}

function scopeLines(data, scope, feature, low, high) {
  const held = heldFor(scope, view.held);
  const range = scope.learnt.range[feature] ?? modelOf(data).extents[feature] ?? null;
  return regionsOf(scope, feature, held, low, high).map(([from, to], i) => {
    const grid = spread(from, to, from === to ? 1 : 120, range ?? []);
    return { x: grid, range, region: askedInCondition(scope, feature) ? [from, to] : null, scope, first: i === 0,
      ...askedAlong(scope.law, grid, feature, held, data.scale) };
  });
}

const askedInCondition = (scope, feature) => scope.conditions.some((tree) => namesIn(tree).has(feature));

function askedAlong(law, grid, feature, held, scale) {
  const columns = { mean: [], new_low: [], new_high: [] };
  for (const x of grid) {
    const values = { ...held, [feature]: x };
    const [low, high] = noiseAt(law, values);
    columns.mean.push(finiteOr(meanAt(law, values) * scale));
    columns.new_low.push(finiteOr(low * scale));
    columns.new_high.push(finiteOr(high * scale));
  }
  return columns;
}

const finiteOr = (value) => (Number.isFinite(value) ? value : null);

// Other laws that fit the data equally well, where their scope holds.
function alternativeTraces(data, feature, lines) {
  if (!view.alternatives) return [];
  const dashes = ["dot", "dashdot", "longdashdot", "longdash"];
  let count = 0;
  return lines.flatMap((line) => (line.scope?.learnt.alternatives ?? []).flatMap((other, i) => {
    const law = lawOfTree(line.scope.alternatives[i]);
    if (!law) return [];
    const { mean } = askedAlong(law, line.x, feature, heldFor(line.scope, view.held), data.scale);
    return [{ type: "scatter", mode: "lines", x: line.x, y: mean, name: `equally good: ${shortened(other.family)}`, showlegend: line.first,
      legendgroup: `alternative ${other.expression}`, legendrank: 2000, line: { color: colour("quiet"), width: 1.5, dash: dashes[count++ % 4] },
      hovertemplate: `${shortened(other.family)}: %{y:.3~s}${data.unit} at %{x:.4~s}<extra></extra>` }];
  }));
}

// Scopes as regions of the axis, shaded in their colours. Parts of a mixture share a region.
function regionShapes(lines, log) {
  const seen = new Set();
  return lines.filter((line) => line.region && !seen.has(`${line.region}`) && seen.add(`${line.region}`)).map(({ region: [x0, x1], scope }) => ({
    type: "rect", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1, layer: "below", fillcolor: faded(scope.colour, 0.09),
    line: { width: 1, color: faded(scope.colour, 0.5), dash: "dot" },
  })).filter((shape) => !(log && shape.x0 <= 0));
}

// Breakpoints of piecewise laws: a line at the value, a band over its interval.
function breakpointShapes(data, feature, log) {
  return breakpointsOf(data, feature, log).flatMap(({ value, low, high }) => [
    { type: "rect", xref: "x", yref: "paper", x0: low, x1: high, y0: 0, y1: 1, layer: "below", line: { width: 0 }, fillcolor: colour("break"), name: "breakpoint" },
    { type: "line", xref: "x", yref: "paper", x0: value, x1: value, y0: 0, y1: 1, layer: "below", line: { width: 1.5, dash: "dot", color: colour("warn") } },
  ]);
}

function breakpointsOf(data, feature, log) {
  const found = [...data.breakpoints, ...data.document.scopes.flatMap((scope) => scope.law.breakpoints)];
  return found.filter((one) => one.feature === feature && one.low != null && one.high != null && !(log && one.low <= 0));
}

function breakpointWords(data, feature, log) {
  return breakpointsOf(data, feature, log).map(({ value, low, high }, i) => ({
    xref: "x", yref: "paper", x: log ? Math.log10(high) : high, y: 0.98 - 0.06 * (i % 8), xanchor: "left", yanchor: "top", showarrow: false,
    text: ` breaks at ${short(value)} (${short(low)}–${short(high)})`, font: { size: 11, color: colour("warn") },
  }));
}

const short = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });
const faded = (hex, alpha) => `rgba(${[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join(",")},${alpha})`;

// Points as traces: coloured by the law that they follow where there are several laws, else by run while runs are few.
function pointTraces(data, feature, x, y, hover) {
  const all = { type: "scatter", mode: "markers", hovertemplate: hover };
  const model = modelOf(data);
  if (model.several && view.colour === "scope") return scopePoints(data, model, feature, x, y, all);
  const present = [...new Set(data.run)].sort((a, b) => a - b);
  if (present.length > MAX_LEGEND) {
    const points = picked(data, x, y, () => true);
    const color = points.at.map((i) => data.run[i]);
    const marker = { size: 5, opacity: near(data, feature, points.at), color, colorscale: "Viridis", cmin: 0, cmax: report.runs.length - 1 };
    return [{ ...all, ...points, marker, name: "points" }];
  }
  return present.map((run) => {
    const points = picked(data, x, y, (i) => data.run[i] === run);
    return { ...all, ...points, name: shortened(report.runs[run]), legendgroup: `run ${run}`,
      marker: { size: 5.5, opacity: near(data, feature, points.at), color: runColour(run), symbol: RUN_SYMBOLS[run % 10] } };
  });
}

function scopePoints(data, model, feature, x, y, all) {
  const traces = model.scopes.map((scope) => {
    const points = picked(data, x, y, (i) => model.member[i] === scope.index);
    return { ...all, ...points, name: scopeName(scope), legendgroup: `scope ${scope.index}`, showlegend: !scope.law,
      marker: { size: 5.5, opacity: near(data, feature, points.at), color: scope.colour, symbol: RUN_SYMBOLS[scope.index % 10] } };
  });
  const outside = { ...all, ...picked(data, x, y, (i) => model.member[i] < 0), name: "in no scope", marker: { size: 5.5, opacity: 0.7, color: colour("quiet"), symbol: "x-thin-open" } };
  return outside.x.length ? [...traces, outside] : traces;
}

function picked(data, x, y, keep) {
  const at = data.run.map((run, i) => i).filter((i) => keep(i) && x[i] != null && y[i] != null);
  return { at, x: at.map((i) => x[i]), y: at.map((i) => y[i]), customdata: at.map((i) => shortened(report.runs[data.run[i]])) };
}

// A point is faint if its other features are far from the values of the curve: the curve is not about it.
function near(data, feature, at) {
  const model = modelOf(data);
  if (feature == null) return 0.75;
  return at.map((i) => {
    const scope = model.scopes[model.member[i]] ?? model.scopes[0];
    const held = scope ? heldFor(scope, view.held) : {};
    return meansOnly(scope, feature).every((name) => closeTo(model, name, model.rows[i][name], held[name])) ? 0.75 : 0.18;
  });
}

const meansOnly = (scope, feature) => [...(scope?.means ?? [])].filter((name) => name !== feature);

// Within a sixth of the feature's span, in orders of magnitude where it spans several.
function closeTo(model, name, value, held) {
  const extent = model.extents[name];
  if (!extent || typeof value !== "number" || typeof held !== "number") return true;
  const { notch } = notched(...extent);
  return Math.abs(notch(value) - notch(held)) <= NOTCHES / 6;
}
