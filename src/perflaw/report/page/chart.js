// The law's chart: points, mean, the interval of the mean (dark) and of a new run (light).

function drawLaw(data, feature, log) {
  const { scale, suffix } = unitOf(data);
  const x = horizontal(data, feature);
  const y = data.y.map((value) => value * scale);
  const line = lawLine(data, feature, x, scale);
  const hover = `%{y:.3~s}${suffix} at %{x:.4~s}<br>%{customdata}<extra></extra>`;
  const traces = [...(line ? bandTraces(line, log) : []), ...pointTraces(data, x, y, hover), ...(line ? meanTraces(line, suffix) : [])];
  traces.forEach((trace) => (trace.showlegend ??= trace.mode === "markers"));
  const vertical = axis(shortened(data.metric), log, suffix);
  const sight = inSight(x, line, log);
  const means = line?.mean.filter((_, i) => !sight || line.x[i] <= sight[1]) ?? [];
  const range = verticalRange([...y, ...means], log);
  if (range) vertical.range = range;
  const words = feature == null ? "order of the points" : shortened(feature);
  const more = { showlegend: new Set(data.run).size > 1, shapes: beyond(line, log), annotations: beyondWords(line, log) };
  Plotly.react("law-chart", traces, layout(400, { ...axis(words, log), ...(sight && { range: sight }) }, vertical, more), CONFIG);
  document.getElementById("chart-note").textContent = chartNote(data, feature, log);
}

// The law over this feature: its curve; for a law without features a level line; otherwise none.
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
  return [...band(line, "newLow", "newHigh", "new", { name: "95 % of a new run", legendrank: 3 }, log),
    ...band(line, "meanLow", "meanHigh", "band", { name: "95 % of the mean", legendrank: 2 }, log)];
}

// Two invisible lines and the area between them. A lower end of zero cannot be drawn on a log axis: far below instead.
function band(line, low, high, filled, named, log) {
  if (!line[low] || !line[high]) return [];
  const floor = Math.min(...line.mean.filter((value) => value > 0)) / 1e6;
  const bottom = log ? line[low].map((value) => Math.max(value, floor)) : line[low];
  const edge = { type: "scatter", mode: "lines", x: line.x, line: { width: 0 }, hoverinfo: "skip", showlegend: false };
  return [{ ...edge, y: bottom },
    { ...edge, y: line[high], fill: "tonexty", fillcolor: colour(filled), ...named, showlegend: true }];
}

// Solid where there is data, dashed beyond it. Neighbouring pieces share a point, so that the line has no gap.
function meanTraces(line, suffix) {
  const [low, high] = line.range ?? [-Infinity, Infinity];
  const inside = line.x.map((x) => x >= low && x <= high);
  const piece = (keep, dash, name) => ({
    type: "scatter", mode: "lines", x: line.x, y: line.mean.map((value, i) => (keep(i) ? value : null)), name,
    line: { color: colour("law"), width: 2, dash }, hovertemplate: `law: %{y:.3~s}${suffix} at %{x:.4~s}<extra></extra>`,
  });
  const beside = (i) => !inside[i] || (i > 0 && !inside[i - 1]) || (i + 1 < inside.length && !inside[i + 1]);
  return [{ ...piece((i) => inside[i], "solid", "law"), legendrank: 1, showlegend: true },
    ...(inside.every(Boolean) ? [] : [piece(beside, "dash", "law, extrapolated")])];
}

// The part of the axis beyond what the law was learnt on, shaded.
function beyond(line, log) {
  return beyondEnds(line, log).map(([x0, x1]) => ({
    type: "rect", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1, layer: "below", line: { width: 0 }, fillcolor: colour("beyond"),
  }));
}

function beyondEnds(line, log) {
  if (!line?.range) return [];
  const first = line.x[0], last = line.x[line.x.length - 1];
  const [low, high] = line.range;
  return [...(first < low && !(log && first <= 0) ? [[first, low]] : []), ...(last > high ? [[high, last]] : [])];
}

function beyondWords(line, log) {
  return beyondEnds(line, log).slice(-1).map(([x0]) => ({
    xref: "x", yref: "paper", x: log ? Math.log10(x0) : x0, y: 0.02, xanchor: "left", yanchor: "bottom", showarrow: false,
    text: "beyond the data", font: { size: 11, color: colour("quiet") },
  }));
}
