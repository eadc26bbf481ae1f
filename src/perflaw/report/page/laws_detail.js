// The selected component: its charts beside its words, and its law asked at a size that the person types.

async function showDetail(index) {
  const row = report.rows[index];
  const data = await componentData(index);
  if (selected !== index) return; // another row was selected while this one was inflated
  const names = chartFeatures(data);
  if (!names.includes(view.feature)) view.feature = null;
  const feature = () => view.feature ?? names[0] ?? null;
  const redraw = (view.redraw = () => drawCharts(index, data, feature()));
  document.getElementById("detail").replaceChildren(
    title(row, data),
    element("div", { class: "columns" },
      element("div", { class: "charts" }, chartArea(data, names, feature)),
      element("div", { class: "words" }, askPanel(data, () => { redraw(); remember(); }), outcomeSection(index), words(row, data))));
  redraw();
}

function title(row, data) {
  const parameters = row.parameters.length ? `(${row.parameters.join(", ")})` : "";
  return element("header", { class: "detail-title" },
    element("h2", null, named("span", null, row.component), named("span", { class: "quiet" }, parameters), " ", badge(row.verdict), " ", row.outcome ? outcomeMark(row.outcome, row.better) : ""),
    element("p", { class: "quiet" }, named("span", null, row.text.place), row.text.place ? " · " : "",
      `${row.text.share} of the ${row.metric}, ${row.text.self} without its callees · ${row.text.calls} ${row.calls === 1 ? "call" : "calls"} · ${data.text.total} in all`));
}

// The law that the row shows comes first, that of a run or those of a call. They are one if each run calls the function once.
function words(row, data) {
  const { document: { features, scopes, marks, run_law }, text } = data;
  const used = new Set(scopes.flatMap((scope) => scope.law.features));
  const model = modelOf(data);
  const laws = scopes.map((scope, i) => lawSection(scopes.length > 1 ? swatch(model.scopes[i]) : "per call:", scope.law, text.scopes[i],
    scopeTitle(scope, text.scopes[i], model.scopes[i], scopes.length > 1)));
  const { once } = data;
  const ofRuns = row.per === "run" || once;
  const readable = named("span", { class: "readable" }, ofRuns ? row.text.law : text.run?.law);
  const run = run_law ? [lawSection(`per ${report.execution}${once ? ", which calls it once" : ""}:`, run_law, { ...text.run, predictions: runPredictions(text), execution: report.execution }, readable)] : [];
  return [
    ...(ofRuns ? run : []),
    featureList(features, used),
    marks.length ? element("p", { class: "reason" }, `learnt after: ${marks.join(", ")}`) : "",
    ...(once ? [] : laws),
    ...(ofRuns ? [] : run),
  ];
}

// The prediction at --at comes first, unless the law has a prediction at that point already.
function runPredictions({ run, predicted }) {
  const known = new Set(run.predictions.map((cells) => cells[0]));
  return [...predicted.filter((cells) => !known.has(cells[0])), ...run.predictions];
}

function chartArea(data, names, feature) {
  if (!data.y?.length) return element("p", { class: "quiet" }, "No points were kept for a chart.");
  return [
    element("div", { class: "chart-bar" }, featureChoice(names, feature), element("span", { id: "axes" }), ...chartSwitches(data), element("span", { id: "chart-note", class: "quiet small" })),
    element("div", { class: "chart-bar", id: "held" }),
    element("div", { id: "law-chart", class: "chart", role: "group", "aria-label": "Points, law and bands" }),
    hasDensity(data) ? [element("h3", { class: "label" }, "distribution of the responses, and the density of each part"),
      element("div", { id: "density-chart", class: "chart", role: "group", "aria-label": "Histogram of the responses with the density of every part" })] : "",
    element("div", { class: "chart-bar" },
      element("h3", { class: "label" }, "residuals"),
      choiceOf("Residuals against", [["feature", "feature"], ["fitted", "fitted value"]], view.against,
        (value) => { view.against = value; view.redraw(); remember(); })),
    element("div", { id: "residual-chart", class: "chart", role: "group", "aria-label": "Residuals" }),
  ];
}

function featureChoice(names, feature) {
  if (names.length < 2) return "";
  const choose = (event) => { view.feature = event.target.value; view.redraw(); remember(); };
  const options = names.map((name) => element("option", { value: name, dir: "auto", selected: name === feature() }, name));
  return element("label", null, "against ", element("select", { id: "feature", onchange: choose, "aria-label": "Feature on the horizontal axis" }, options));
}

// Switches that only some components need: colours by law or run, and the equally good laws.
function chartSwitches(data) {
  const model = modelOf(data);
  const others = model.scopes.reduce((count, scope) => count + scope.learnt.alternatives.length, 0);
  const change = (field) => (value) => { view[field] = value; view.redraw(); remember(); };
  return [
    model.several ? choiceOf("Colour of the points", [["scope", "by law"], ["run", "by run"]], view.colour, change("colour")) : "",
    model.several ? tick("bands", bandsShown(model), `${CONFIDENCE.words} of calls`, change("bands")) : "",
    others ? tick("alternatives", view.alternatives, `${counted(others, "equally good law")}`, change("alternatives")) : "",
  ];
}

const tick = (id, checked, text, change) => element("label", null,
  element("input", { type: "checkbox", id, checked, onchange: (event) => change(event.target.checked) }), ` ${text}`);

function drawCharts(index, data, feature) {
  if (!data.y?.length) return;
  const log = view.axes ? view.axes === "log" : suitsLog(data, feature);
  document.getElementById("axes").replaceChildren(choiceOf("Axes", [["log", "log–log"], ["linear", "linear"]],
    log ? "log" : "linear", (value) => { view.axes = value; drawCharts(index, data, feature); remember(); }));
  const curves = () => drawLaw(data, feature, log, { old: report.outcomes?.old[index], mark: markOf(data, feature) });
  // A slider that is being dragged must not be replaced: only another feature on the axis makes new sliders.
  const held = document.getElementById("held");
  if (held.dataset.feature !== String(feature)) {
    held.dataset.feature = String(feature);
    held.replaceChildren(...heldBar(data, feature, () => { curves(); remember(); }));
  }
  curves();
  if (document.getElementById("density-chart")) drawDensity(data, log);
  drawResiduals(data, feature, log);
}

// `law` is a law's document, `text` the words about it.
function lawSection(title, law, text, condition) {
  return element("section", { class: "law" },
    element("h3", null, title, " ", condition ?? ""),
    law.reason ? named("p", { class: `reason is-${law.verdict}` }, law.reason) : "",
    element("div", { class: "expression" }, named("code", null, law.expression), copyButton(law.expression)),
    predictionTable(text.predictions, text.execution),
    factList(text.facts.filter(([, value]) => value)),
    alternatives(law.alternatives, text.alternatives));
}

function factList(facts) {
  return element("dl", null, facts.map(([name, value]) => [element("dt", null, name), named("dd", null, value)]));
}

function predictionTable(rows, execution = "run") {
  if (!rows.length) return "";
  const heads = ["at", "expected", `${CONFIDENCE.words} of the mean`, `${CONFIDENCE.words} of a new ${execution}`];
  return element("table", { class: "plain predictions" },
    element("thead", null, element("tr", null, heads.map((text, i) =>
      element("th", { scope: "col", class: i ? "number" : null }, text)))),
    element("tbody", null, rows.map((cells) => element("tr", null, cells.map((text, i) =>
      named("td", { class: i ? "number" : null }, text))))));
}

function alternatives(laws, slopes) {
  if (!laws.length) return "";
  return element("div", { class: "alternatives" },
    element("h3", { class: "label" }, "laws that fit equally well"),
    element("ul", null, laws.map((other, i) => element("li", null,
      named("code", null, other.expression),
      named("span", { class: "quiet" }, ` ${other.family}, ${slopes[i]}, score ${other.delta.toFixed(1)} worse`)))));
}

function featureList(features, used) {
  if (!features.length) return element("p", { class: "features quiet" }, "No feature was read of it.");
  const items = features.map((name, i) => [i ? ", " : "", named(used.has(name) ? "b" : "span", null, name)]);
  const end = used.size && used.size < features.length ? " (bold: in the law)" : "";
  return element("p", { class: "features" }, element("span", { class: "quiet" }, "features read: "), items,
    element("span", { class: "quiet" }, end));
}

// The condition in words; its tooltip holds the condition in the annotation language.
function scopeTitle(scope, text, model, several) {
  const parts = [];
  if (scope.condition) parts.push(named("span", { class: "condition", title: scope.condition }, model.label), ": ");
  if (text.probability !== "100 %") parts.push(`${text.probability} of the calls${scope.condition ? " there" : ""}: `);
  else if (several && !scope.condition) parts.push("everywhere else: ");
  return element("span", { class: "scope" }, parts, named("span", { class: "readable" }, text.law));
}

function askPanel(data, changed) {
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
    element("h3", { class: "label" }, "what would a call cost at"),
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

// Twice the largest value of a feature that a person varies; typical values of the others.
function suggested(model, name) {
  const high = model.extents[name]?.[1];
  return model.asked.means.includes(name) && high > 0 ? high * 2 : model.all[name] ?? 0;
}

function answerFor(data, model, values) {
  const holding = model.scopes.filter((scope) => scope.law && scope.holds(values));
  if (!holding.length) return [element("p", { class: "reason is-inconclusive" }, "no law holds there: no scope was learnt for these values")];
  const means = holding.map((scope) => meanAt(scope.law, values));
  const whole = holding.reduce((sum, scope) => sum + scope.probability, 0);
  const mean = means.reduce((sum, value, i) => sum + value * holding[i].probability, 0) / (whole || 1);
  const parts = holding.length > 1 ? [element("ul", null, holding.map((scope, i) => element("li", null, swatch(scope), `${percentText(scope.probability)}: `,
    element("b", null, quantity(means[i], data.document.unit)), element("span", { class: "quiet" }, ` (${span(...noiseAt(scope.law, values), data.document.unit)} of calls)`))))] : [];
  const ends = intervalAt(data, model, values);
  const known = !ends || isKnown(mean, ends.mean_low, ends.mean_high);
  const answer = element("b", { class: "asked" }, known ? quantity(mean, data.document.unit) : "unknown");
  return [element("p", null, answer, " ", known ? intervalWords(data, ends, holding, values) : ""), ...parts, ...farWords(holding, values)];
}

const swatch = (scope) => {
  const made = element("span", { class: "swatch", "aria-hidden": "true" });
  made.style.background = scope.colour;
  return made;
};

function intervalWords(data, ends, holding, values) {
  const unit = data.document.unit;
  if (ends) return element("span", { class: "quiet" }, `${CONFIDENCE.words} of the mean ${span(ends.mean_low, ends.mean_high, unit)}, of a new run ${span(ends.new_low, ends.new_high, unit)}`);
  if (holding.length > 1) return element("span", { class: "quiet" }, "on average");
  const [low, high] = noiseAt(holding[0].law, values);
  return element("span", { class: "quiet" }, `${CONFIDENCE.words} of calls ${span(low, high, unit)} by its noise alone; perflaw predict computes the intervals`);
}

// The limits that the law predicts at these values, else the learner's bands at a value of the only feature, between two
// points of its curve; null beyond it.
function intervalAt(data, model, values) {
  const [feature, ...others] = model.asked.means;
  const predictions = model.several ? [] : model.scopes[0].learnt.predictions;
  const known = predictions.find((one) => model.asked.means.every((name) => one.features[name] === values[name]));
  if (known) return known;
  const curve = data.curves.find((one) => one.feature === feature);
  if (model.several || others.length || !curve) return null;
  const right = curve.x.findIndex((x) => x >= values[feature]);
  if (right < 0 || (right === 0 && curve.x[0] !== values[feature])) return null;
  const left = Math.max(0, right - 1);
  const part = right === left ? 0 : (values[feature] - curve.x[left]) / (curve.x[right] - curve.x[left]);
  const mean = meanAt(model.scopes[0].law, values);
  const at = (name) => curve[name][left] + (curve[name][right] - curve[name][left]) * part;
  // As ratios to the drawn mean, which is rounded and straight between its points.
  return Object.fromEntries(["mean_low", "mean_high", "new_low", "new_high"].map((name) => [name, Math.max(0, mean * (at(name) / at("mean") || 1))]));
}

// States where the answer lies beyond the data.
function farWords(holding, values) {
  const far = new Set(holding.flatMap((scope) => Object.entries(scope.learnt.range).filter(([name, [low, high]]) => values[name] < low || values[name] > high)
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
  return { x: values[feature], y: y * data.scale, ...(ends && { low: ends.new_low * data.scale, high: ends.new_high * data.scale }) };
}
