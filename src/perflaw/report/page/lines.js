// Lines over one feature: the learner's own where it drew them, else the law's text asked along the axis.

// Every line is {x, mean, …, scope}: one for each piece of the axis on which its scope holds.
function linesOf(data, feature, x) {
  const model = modelOf(data);
  const drawn = !model.several && !overridden(model) ? lawLine(data, feature, x, data.scale) : null;
  if (drawn) return [{ ...drawn, scope: model.scopes[0], first: true }];
  if (feature == null) return [];
  const [low, high] = reach(data, feature, x);
  // Where none of a scope's points has the feature (the length of what is a number), its law has no place on that axis.
  const placed = (scope) => scope.law && (!scope.points || scope.typical[feature] != null);
  return model.scopes.filter(placed).flatMap((scope) => scopeLines(data, scope, feature, low, high));
}

const overridden = (model) => model.asked.means.some((name) => name in view.held);

// How far along the axis laws are drawn: as far as the learner did; a law asked here, to ten times the data.
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
  const range = scope.range?.[feature] ?? modelOf(data).extents[feature] ?? null;
  return regionsOf(scope, feature, held, low, high).map(([from, to], i) => {
    const grid = spread(from, to, from === to ? 1 : 120, range ?? []);
    return { x: grid, range, region: askedInCondition(scope, feature) ? [from, to] : null, scope, first: i === 0,
      ...askedAlong(scope.law, grid, feature, held, data.scale) };
  });
}

const askedInCondition = (scope, feature) => scope.conditions.some((tree) => namesIn(tree).has(feature));

function askedAlong(law, grid, feature, held, scale) {
  const columns = { mean: [], newLow: [], newHigh: [] };
  for (const x of grid) {
    const values = { ...held, [feature]: x };
    const [low, high] = noiseAt(law, values);
    columns.mean.push(finiteOr(meanAt(law, values) * scale));
    columns.newLow.push(finiteOr(low * scale));
    columns.newHigh.push(finiteOr(high * scale));
  }
  return columns;
}

const finiteOr = (value) => (Number.isFinite(value) ? value : null);

// The laws that the data cannot tell from a scope's own, where that holds.
function alternativeTraces(data, feature, lines) {
  if (!view.alternatives) return [];
  const dashes = ["dot", "dashdot", "longdashdot", "longdash"];
  let count = 0;
  return lines.flatMap((line) => (line.scope?.alternatives ?? []).flatMap((other) => {
    const law = lawOfTree(other.tree);
    if (!law) return [];
    const { mean } = askedAlong(law, line.x, feature, heldFor(line.scope, view.held), data.scale);
    return [{ type: "scatter", mode: "lines", x: line.x, y: mean, name: `not told apart: ${shortened(other.family)}`, showlegend: line.first,
      legendgroup: `alternative ${other.expression}`, legendrank: 2000, line: { color: colour("quiet"), width: 1.5, dash: dashes[count++ % 4] },
      hovertemplate: `${shortened(other.family)}: %{y:.3~s}${data.unit} at %{x:.4~s}<extra></extra>` }];
  }));
}

// Scopes as regions of the axis: shaded in their colour, their condition at the top. Parts of a mixture share theirs.
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
  const found = [...data.breakpoints, ...data.scopes.flatMap((scope) => scope.breakpoints)];
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
