// The laws of a component as the charts use them: where each holds, which points follow it, typical values there, sliders.

const SCOPE_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#b4548b", "#b06f00", "#2583c0", "#7b61c4", "#8a7f00", "#8c564b", "#5f6b77"];
const DARK_SCOPES = ["#56b4e9", "#ff8f57", "#35d0a0", "#eba4cb", "#f5b942", "#9bdcff", "#b9a6f5", "#dcd25a", "#d9a08f", "#c2c8cf"];

// The model is made once for a component and kept with its data.
function modelOf(data) {
  return (data.model ??= makeModel(data));
}

function makeModel(data) {
  const rows = data.y ? data.y.map((_, i) => rowOf(data, i)) : [];
  const scopes = scopesOf(data.document.scopes.map((scope, i) => ({ ...scope, ...data.trees[i] })));
  const member = rows.map((row, i) => memberOf(scopes, row, data.y[i]));
  for (const scope of scopes) {
    const mine = rows.filter((row, i) => member[i] === scope.index);
    scope.points = mine.length;
    scope.typical = typical(mine.length ? mine : rows.filter((row) => scope.holds(row)));
  }
  return { rows, scopes, member, all: typical(rows), extents: extentsOf(rows), asked: askedOf(scopes), several: scopes.length > 1 };
}

const rowOf = (data, i) => Object.fromEntries(
  [...Object.entries(data.features ?? {}), ...Object.entries(data.categories ?? {})].map(([name, values]) => [name, values[i]]));

// Where several conditions are true, the first counts. Parts of a mixture share a condition.
function scopesOf(learnt) {
  const scopes = learnt.map((scope) => ({ ...scope, where: nodeOf(scope.where) }));
  return scopes.map((scope, index) => {
    const others = scopes.slice(0, index).filter((other) => other.where && other.condition !== scope.condition);
    return scopeOf(scope, index, others.map((other) => other.where));
  });
}

// A scope ready to be evaluated: `learnt` is its law's document, `law` the law as a tree, `conditions` are its own and earlier ones.
function scopeOf(scope, index, before) {
  const { where } = scope;
  const known = !scope.condition || where != null;
  const conditions = where ? [where, ...before] : before;
  const law = lawOfTree(scope.tree, scope.factor);
  return {
    ...scope, index, conditions, learnt: scope.law, law, means: new Set((law?.args ?? []).flatMap((part) => [...namesIn(part)])),
    label: !scope.condition && before.length ? "everywhere else" : conditionText(scope.condition, where),
    holds: (values) => known && (!where || truth(evaluate(where, values))) && !before.some((one) => truth(evaluate(one, values))),
    get colour() { return (isDark() ? DARK_SCOPES : SCOPE_COLOURS)[index % SCOPE_COLOURS.length]; },
  };
}

// The law that a point most probably follows, −1 where none holds: in a mixture the part with the highest p · density.
function memberOf(scopes, row, y) {
  let best = -1, most = -Infinity;
  for (const scope of scopes) {
    if (!scope.holds(row)) continue;
    const weight = scope.law ? Math.log(scope.probability * densityAt(scope.law, y, row)) : NaN;
    // Where a point is too far from every part for a density, the nearest mean decides, below any density.
    const far = Number.isFinite(weight) ? weight : -1e6 - (scope.law ? Math.abs(Math.log(y / meanAt(scope.law, row))) || 0 : 1e3);
    if (far > most) [best, most] = [scope.index, far];
  }
  return best;
}

// Medians of numbers, the most frequent texts.
function typical(rows) {
  const found = {};
  for (const name of new Set(rows.flatMap((row) => Object.keys(row)))) {
    const values = rows.map((row) => row[name]).filter((value) => value != null && value !== "");
    if (values.length) found[name] = typeof values[0] === "string" ? commonest(values) : median(values);
  }
  return found;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

function commonest(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
}

function extentsOf(rows) {
  const extents = {};
  for (const row of rows) {
    for (const [name, value] of Object.entries(row)) {
      if (typeof value !== "number") continue;
      const known = (extents[name] ??= [value, value]);
      known[0] = Math.min(known[0], value);
      known[1] = Math.max(known[1], value);
    }
  }
  return extents;
}

// Features that laws and conditions use, those of the means first: they are what a person varies.
function askedOf(scopes) {
  const means = new Set(), conditions = new Set();
  for (const scope of scopes) {
    for (const name of scope.means) means.add(name);
    if (scope.where) namesIn(scope.where, conditions);
  }
  return { means: [...means], conditions: [...conditions].filter((name) => !means.has(name)) };
}

// Values of the other features where a curve of `scope` is drawn: typical ones, and those that the person holds fixed.
const heldFor = (scope, held) => ({ ...scope.typical, ...held });

// Pieces [from, to] of low … high on which the scope holds. Ends are found by bisection, whatever the condition is.
function regionsOf(scope, feature, held, low, high) {
  if (!scope.conditions.length) return [[low, high]];
  const at = (x) => scope.holds({ ...held, [feature]: x });
  const grid = spread(low, high, 160, scope.conditions.flatMap(thresholds));
  const pieces = [];
  grid.forEach((x, i) => {
    if (!at(x)) return;
    const from = i && !at(grid[i - 1]) ? edge(at, grid[i - 1], x) : x;
    const to = i + 1 < grid.length && !at(grid[i + 1]) ? edge(at, grid[i + 1], x) : x;
    const last = pieces.at(-1);
    if (last && i && at(grid[i - 1])) last[1] = to;
    else pieces.push([from, to]);
  });
  return pieces;
}

function edge(at, out, inside) {
  for (let i = 0; i < 50; i++) {
    const middle = (out + inside) / 2;
    if (at(middle)) inside = middle;
    else out = middle;
  }
  return inside;
}

// Numbers in a condition: both sides of each are looked at, however close two of them are.
function thresholds(tree) {
  if (tree.kind === "number") return [tree.value, -tree.value];
  return [tree.operand, tree.left, tree.right, ...(tree.args ?? [])].filter(Boolean).flatMap(thresholds);
}

function spread(low, high, count, extra = []) {
  const log = low > 0 && high > 20 * low;
  const step = (i) => (log ? low * (high / low) ** (i / count) : low + ((high - low) * i) / count);
  const beside = extra.flatMap((x) => [x - Math.abs(x) * 1e-9 - 1e-12, x, x + Math.abs(x) * 1e-9 + 1e-12]);
  const grid = Array.from({ length: count + 1 }, (_, i) => step(i));
  grid[count] = high;
  return [...new Set([...grid, ...beside.filter((x) => x > low && x < high)])].sort((a, b) => a - b);
}

// Laws of several features are drawn over one of them; sliders hold the others, at their medians at first.
const NOTCHES = 400;

function heldBar(data, feature, changed) {
  const model = modelOf(data);
  const others = model.asked.means.filter((name) => name !== feature && model.extents[name]);
  if (!others.length) return [];
  const reset = element("button", { type: "button", class: "link", onclick: () => { view.held = {}; changed(); showBar(); } }, "medians");
  const showBar = () => document.getElementById("held").replaceChildren(...heldBar(data, feature, changed));
  return [element("span", { class: "quiet small" }, "held at"), ...others.map((name) => slider(model, name, changed)), reset];
}

function slider(model, name, changed) {
  const [low, high] = model.extents[name];
  const scale = notched(low, high);
  const shown = element("input", { type: "number", step: "any", value: view.held[name] ?? model.all[name], "data-held": name, "aria-label": `${name}, held at` });
  const range = element("input", { type: "range", min: 0, max: NOTCHES, value: scale.notch(view.held[name] ?? model.all[name]), "aria-label": name, "data-slider": name });
  range.addEventListener("input", () => { shown.value = view.held[name] = scale.value(Number(range.value)); changed(); });
  shown.addEventListener("input", () => {
    if (shown.value === "") delete view.held[name];
    else view.held[name] = Number(shown.value);
    range.value = scale.notch(view.held[name] ?? model.all[name]);
    changed();
  });
  return element("label", { class: "slider" }, named("span", null, name), " ", range, shown);
}

// Sliders move evenly through orders of magnitude where the values span several.
function notched(low, high) {
  const log = low > 0 && high > 20 * low;
  const whole = Number.isInteger(low) && Number.isInteger(high);
  const to = log ? Math.log : (x) => x, back = log ? Math.exp : (x) => x;
  const width = to(high) - to(low) || 1;
  const tidy = (x) => (whole ? Math.round(x) : Number(x.toPrecision(4)));
  return {
    value: (notch) => tidy(back(to(low) + (width * notch) / NOTCHES)),
    notch: (value) => Math.round((NOTCHES * (to(Math.min(high, Math.max(low, value))) - to(low))) / width),
  };
}
