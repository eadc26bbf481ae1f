// What all charts share: colours of the page's style, names, the frame, features and scales.

const MAX_LEGEND = 10;
// Colours that people with any colour vision tell apart, for light pages and for dark ones.
const LIGHT_COLOURS = ["#0072b2", "#b06f00", "#009e73", "#b4548b", "#d55e00", "#2583c0", "#8a7f00", "#7b61c4", "#8c564b", "#767676"];
const DARK_COLOURS = ["#56b4e9", "#f5b942", "#35d0a0", "#eba4cb", "#ff8f57", "#9bdcff", "#dcd25a", "#b9a6f5", "#d9a08f", "#c2c8cf"];
const isDark = () => document.documentElement.dataset.theme === "dark";
const runColour = (run) => (isDark() ? DARK_COLOURS : LIGHT_COLOURS)[run % 10];
const RUN_SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "triangle-down", "star", "hexagon", "pentagon"];

// Light or dark like the system, until the person chooses; paper is light.
function setTheme(theme) {
  view.theme = theme;
  const dark = theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  viewNow()?.draw();
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Names from the target without the characters that turn the direction of the text beside them.
const safe = (text) => String(text).replace(/[\u202a-\u202e\u2066-\u2069]/g, "");
const shortened = (text) => safe(text.length > 60 ? `${text.slice(0, 59)}…` : text);

const unitOf = (data) => ({ scale: data.scale, suffix: data.unit });

function axis(title, log, suffix = "") {
  return { title: { text: title }, type: log ? "log" : "linear", ticksuffix: suffix, exponentformat: "SI", minexponent: suffix === "s" ? 0 : 3,
    gridcolor: colour("grid"), linecolor: colour("line") };
}

function layout(height, xaxis, yaxis, more) {
  return { height, xaxis, yaxis, showlegend: false, font: { family: getComputedStyle(document.body).fontFamily, color: colour("text") }, ...more };
}

// Features for the horizontal axis: first those that the law was drawn for, then the others that have values.
function chartFeatures(data) {
  const { means, conditions } = modelOf(data).asked;
  const known = [...means, ...conditions].filter((name) => data.features?.[name]?.some((value) => value != null));
  const drawn = [...data.curves.map((curve) => curve.feature), ...known];
  const read = Object.entries(data.features ?? {}).filter(([, values]) => values.some((value) => value != null));
  return [...new Set([...drawn, ...read.map(([name]) => name)])];
}

// Without features, points stand in their order.
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
  const notes = data.of > data.y.length ? [`${data.y.length.toLocaleString("en")} of ${data.of.toLocaleString("en")} points, drawn at random`] : [];
  const model = modelOf(data);
  const held = model.asked.means.filter((name) => name !== feature && model.extents[name]);
  if (held.length && !overridden(model)) notes.push(`${held.length > 1 ? "the others" : held[0]} at the median${model.several ? " of each scope" : ""}`);
  if (unread) notes.push(`${counted(unread, "point")} without a value of this feature`);
  if (hidden) notes.push(`${counted(hidden, "point")} at or below zero not shown on these axes`);
  if (new Set(data.run).size > MAX_LEGEND && !(model.several && view.colour === "scope")) notes.push("coloured by the order of the runs");
  return notes.join(" · ");
}

// The law is drawn to ten times the data, which would be a corner on linear axes: these show twice the data, and zooming out shows more.
function inSight(x, line, log) {
  const known = x.filter((value) => value != null);
  if (log || !line?.range || !known.length) return null;
  const low = Math.min(...known), high = Math.max(...known);
  const pad = 0.05 * (high - low);
  return [Math.min(low - pad, low > 0 ? 0 : low - pad), high > 0 ? 2 * high + pad : high + pad];
}

// The vertical range holds the points and the law. Bands may leave it: a wide band would flatten everything else.
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
