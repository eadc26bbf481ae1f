// Points as traces: coloured by the law they follow where there are several, else by run while runs are few.

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
      marker: { size: 5.5, opacity: near(data, feature, points.at), color: RUN_COLOURS[run % 10], symbol: RUN_SYMBOLS[run % 10] } };
  });
}

function scopePoints(data, model, feature, x, y, all) {
  const traces = model.scopes.map((scope) => {
    const points = picked(data, x, y, (i) => model.member[i] === scope.index);
    return { ...all, ...points, name: scopeName(scope), legendgroup: `scope ${scope.index}`, showlegend: !scope.law,
      marker: { size: 5.5, opacity: near(data, feature, points.at), color: scope.colour, symbol: RUN_SYMBOLS[scope.index % 10] } };
  });
  const outside = { ...all, ...picked(data, x, y, (i) => model.member[i] < 0), name: "in no scope", marker: { size: 5.5, opacity: 0.7, color: "#8a939d", symbol: "x-thin-open" } };
  return outside.x.length ? [...traces, outside] : traces;
}

function picked(data, x, y, keep) {
  const at = data.run.map((run, i) => i).filter((i) => keep(i) && x[i] != null && y[i] != null);
  return { at, x: at.map((i) => x[i]), y: at.map((i) => y[i]), customdata: at.map((i) => shortened(report.runs[data.run[i]])) };
}

// Points whose other features are far from where the curve holds them are faint: the curve does not speak of them.
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

// Within a sixth of the feature's span, in orders of magnitude where it spans them.
function closeTo(model, name, value, held) {
  const extent = model.extents[name];
  if (!extent || typeof value !== "number" || typeof held !== "number") return true;
  const { notch } = notched(...extent);
  return Math.abs(notch(value) - notch(held)) <= NOTCHES / 6;
}
