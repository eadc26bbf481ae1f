// The law asked at a size that the person types: worked out here from its text, intervals from the learner's own curves.

function askPanel(row, data, changed) {
  const model = modelOf(data);
  const names = [...model.asked.means, ...model.asked.conditions];
  if (!model.scopes.some((scope) => scope.law) || !names.length) return "";
  const answer = element("div", { class: "answer", id: "answer", role: "status", "aria-live": "polite" });
  const tell = () => {
    const values = askedValues(model, names);
    answer.replaceChildren(...answerFor(data, model, values));
    changed();
  };
  const form = element("form", { class: "ask", onsubmit: (event) => event.preventDefault() },
    element("h4", null, "what would it cost at"),
    element("div", { class: "ask-inputs" }, names.map((name) => askInput(data, model, name, tell))), answer);
  answer.replaceChildren(...answerFor(data, model, askedValues(model, names)));
  return form;
}

function askInput(data, model, name, tell) {
  const change = (event) => {
    if (event.target.value === "") delete view.at[name];
    else view.at[name] = data.categories?.[name] ? event.target.value : Number(event.target.value);
    tell();
  };
  const label = named("span", null, conditionText(name, null));
  const kinds = data.categories?.[name] && [...new Set(data.categories[name])].sort();
  const value = view.at[name] ?? suggested(model, name);
  const input = kinds
    ? element("select", { "data-feature": name, onchange: change }, kinds.map((kind) => element("option", { value: kind, selected: kind === value }, kind || "(not read)")))
    : element("input", { type: "number", step: "any", "data-feature": name, value, oninput: change });
  return element("label", null, label, " ", input);
}

const askedValues = (model, names) => Object.fromEntries(names.map((name) => [name, view.at[name] ?? suggested(model, name)]));

// Twice the largest seen of what a person varies; of the others what is typical.
function suggested(model, name) {
  const high = model.extents[name]?.[1];
  return model.asked.means.includes(name) && high > 0 ? high * 2 : model.all[name] ?? 0;
}

function answerFor(data, model, values) {
  const holding = model.scopes.filter((scope) => scope.law && scope.holds(values));
  if (!holding.length) return [element("p", { class: "reason is-inconclusive" }, "no law holds there: it is in no scope that was learnt")];
  const means = holding.map((scope) => meanAt(scope.law, values));
  const whole = holding.reduce((sum, scope) => sum + scope.probability, 0);
  const mean = means.reduce((sum, value, i) => sum + value * holding[i].probability, 0) / (whole || 1);
  const parts = holding.length > 1 ? [element("ul", null, holding.map((scope, i) => element("li", null, swatch(scope), `${percentText(scope.probability)}: `,
    element("b", null, quantity(means[i], data.metricUnit)), element("span", { class: "quiet" }, ` (${span(...noiseAt(scope.law, values), data.metricUnit)} of calls)`))))] : [];
  return [element("p", null, element("b", { class: "asked" }, quantity(mean, data.metricUnit)), " ", intervalWords(data, model, holding, values)), ...parts, ...farWords(holding, values)];
}

const swatch = (scope) => {
  const made = element("span", { class: "swatch", "aria-hidden": "true" });
  made.style.background = scope.colour;
  return made;
};

function intervalWords(data, model, holding, values) {
  const ends = intervalAt(data, model, values);
  const unit = data.metricUnit;
  if (ends) return element("span", { class: "quiet" }, `${CONFIDENCE.words} of the mean ${span(ends.meanLow, ends.meanHigh, unit)}, of a new run ${span(ends.newLow, ends.newHigh, unit)}`);
  if (holding.length > 1) return element("span", { class: "quiet" }, "on average");
  const [low, high] = noiseAt(holding[0].law, values);
  return element("span", { class: "quiet" }, `${CONFIDENCE.words} of calls ${span(low, high, unit)} by its noise alone; perflaw predict tells the intervals`);
}

// The learner's bands at a value of the only feature, between two points of its curve; null beyond it.
function intervalAt(data, model, values) {
  const [feature, ...others] = model.asked.means;
  const curve = data.curves.find((one) => one.feature === feature);
  if (model.several || others.length || !curve) return null;
  const right = curve.x.findIndex((x) => x >= values[feature]);
  if (right < 0 || (right === 0 && curve.x[0] !== values[feature])) return null;
  const left = Math.max(0, right - 1);
  const part = right === left ? 0 : (values[feature] - curve.x[left]) / (curve.x[right] - curve.x[left]);
  const mean = meanAt(model.scopes[0].law, values);
  const at = (name) => curve[name][left] + (curve[name][right] - curve[name][left]) * part;
  // As a distance from the drawn mean, which is rounded and straight between its points.
  return Object.fromEntries(["meanLow", "meanHigh", "newLow", "newHigh"].map((name) => [name, Math.max(0, mean * (at(name) / at("mean") || 1))]));
}

// Said aloud: an answer from beyond the data.
function farWords(holding, values) {
  const far = new Set(holding.flatMap((scope) => Object.entries(scope.range ?? {}).filter(([name, [low, high]]) => values[name] < low || values[name] > high)
    .map(([name, [low, high]]) => `${name} was ${short(low)}–${short(high)} in the data`)));
  return far.size ? [named("p", { class: "quiet small" }, `beyond the data: ${[...far].join(", ")}`)] : [];
}

// The answer as a point of the chart over `feature`.
function markOf(data, feature) {
  const model = modelOf(data);
  if (feature == null || !(feature in view.at)) return null;
  const values = askedValues(model, [...model.asked.means, ...model.asked.conditions]);
  const holding = model.scopes.filter((scope) => scope.law && scope.holds(values));
  if (!holding.length) return null;
  const whole = holding.reduce((sum, scope) => sum + scope.probability, 0);
  const y = holding.reduce((sum, scope) => sum + meanAt(scope.law, values) * scope.probability, 0) / (whole || 1);
  const ends = intervalAt(data, model, values);
  return { x: values[feature], y: y * data.scale, ...(ends && { low: ends.newLow * data.scale, high: ends.newHigh * data.scale }) };
}
