// Which feature and which scale: what suits the data, and what to say where it hides some.

// Features that can stand on the axis: those the law was drawn for first, then the others that have values.
function chartFeatures(data) {
  const { means, conditions } = modelOf(data).asked;
  const known = [...means, ...conditions].filter((name) => data.features?.[name]?.some((value) => value != null));
  const drawn = [...data.curves.map((curve) => curve.feature), ...known];
  const read = Object.entries(data.features ?? {}).filter(([, values]) => values.some((value) => value != null));
  return [...new Set([...drawn, ...read.map(([name]) => name)])];
}

// A component without features is shown in the order of its points.
const horizontal = (data, feature) => data.features?.[feature] ?? data.y.map((_, i) => i + 1);

const positive = (values) => values.every((value) => value == null || value > 0);

function suitsLog(data, feature) {
  const x = horizontal(data, feature).filter((value) => value != null);
  return x.length > 0 && positive(x) && positive(data.y) && Math.max(...x) > 4 * Math.min(...x) && feature != null;
}

function chartNote(data, feature, log) {
  const x = horizontal(data, feature);
  const unread = x.filter((value) => value == null).length;
  const hidden = log ? x.filter((value, i) => value != null && (value <= 0 || data.y[i] <= 0)).length : 0;
  const notes = data.of > data.y.length ? [`${data.y.length} of ${data.of} points, drawn by lot`] : [];
  const model = modelOf(data);
  const held = model.asked.means.filter((name) => name !== feature && model.extents[name]);
  if (held.length && !overridden(model)) notes.push(`${held.length > 1 ? "the others" : held[0]} at the median${model.several ? " of each scope" : ""}`);
  if (unread) notes.push(`${plural(unread, "point")} without a value of it`);
  if (hidden) notes.push(`${plural(hidden, "point")} at or below zero not shown on these axes`);
  if (new Set(data.run).size > MAX_LEGEND && !(model.several && view.colour === "scope")) notes.push("coloured by the order of the runs");
  return notes.join(" · ");
}

// On even axes the law reaches to ten times the data, and the data would be a corner: show to twice, the rest by zooming out.
function inSight(x, line, log) {
  const known = x.filter((value) => value != null);
  if (log || !line?.range || !known.length) return null;
  const low = Math.min(...known), high = Math.max(...known);
  const pad = 0.05 * (high - low);
  return [Math.min(low - pad, low > 0 ? 0 : low - pad), high > 0 ? 2 * high + pad : high + pad];
}

// The vertical range holds the points and the law; bands may leave it, or a wide one would flatten all else.
function verticalRange(values, log) {
  const shown = values.filter((value) => value != null && (!log || value > 0));
  if (!shown.length) return null;
  const low = Math.min(...shown), high = Math.max(...shown);
  if (log) {
    const pad = 0.06 * Math.log10(high / low) || 0.3;
    return [Math.log10(low) - pad, Math.log10(high) + pad];
  }
  const pad = 0.06 * (high - low) || Math.abs(high) * 0.3 || 1;
  return [low >= 0 ? Math.max(-pad / 4, low - pad) : low - pad, high + pad];
}
