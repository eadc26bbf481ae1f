// The selected component: its name, its charts beside its words.

async function showDetail(index) {
  const row = report.rows[index];
  const detail = report.details[index];
  const data = await chartData(index);
  if (selected !== index) return; // another row was selected while this one was inflated
  const names = chartFeatures(data);
  if (!names.includes(view.feature)) view.feature = null;
  const feature = () => view.feature ?? names[0] ?? null;
  const redraw = (view.redraw = () => drawCharts(index, data, feature()));
  document.getElementById("detail").replaceChildren(
    title(row, detail),
    element("div", { class: "columns" },
      element("div", { class: "charts" }, chartArea(data, names, feature)),
      element("div", { class: "words" }, askPanel(row, data, () => { redraw(); remember(); }), outcomeSection(index), words(row, detail, data))));
  redraw();
}

function title(row, detail) {
  const parameters = row.parameters.length ? `(${row.parameters.join(", ")})` : "";
  return element("header", { class: "detail-title" },
    element("h2", null, named("span", null, row.name), named("span", { class: "quiet" }, parameters), " ", badge(row.verdict), " ", row.outcome ? outcomeMark(row.outcome, row.better) : ""),
    element("p", { class: "quiet" }, named("span", null, row.place), row.place ? " · " : "",
      `${row.shares[0]} of the ${row.metric}, ${row.shares[1]} without its callees · ${row.callsText} calls · ${detail.total} in all`));
}

function words(row, detail, data) {
  const several = detail.scopes.length > 1;
  const model = modelOf(data);
  const laws = detail.scopes.map((scope, i) => lawSection(several ? swatch(model.scopes[i]) : "", scope, scopeTitle(scope, model.scopes[i], several)));
  const run = detail.run;
  return [
    featureList(detail),
    detail.marks.length ? element("p", { class: "reason" }, `learnt after: ${detail.marks.join(", ")}`) : "",
    ...laws,
    run ? lawSection("per run:", { ...run, predictions: runPredictions(run, detail) }, named("span", { class: "readable" }, run.text)) : "",
  ];
}

// What was asked by --at comes first, unless the law was already asked there.
function runPredictions(run, detail) {
  const known = new Set(run.predictions.map((cells) => cells[0]));
  return [...detail.predicted.filter((cells) => !known.has(cells[0])), ...run.predictions];
}

function chartArea(data, names, feature) {
  if (!data.y?.length) return element("p", { class: "quiet" }, "No points were kept for a chart.");
  return [
    element("div", { class: "chart-bar" }, featureChoice(names, feature), element("span", { id: "axes" }), ...chartSwitches(data), element("span", { id: "chart-note", class: "quiet small" })),
    element("div", { class: "chart-bar", id: "held" }),
    element("div", { id: "law-chart", class: "chart", role: "img", "aria-label": "Points, law and bands" }),
    hasDensity(data) ? [element("h4", null, "how the responses are spread, and what the parts say"),
      element("div", { id: "density-chart", class: "chart", role: "img", "aria-label": "Histogram of the responses with the density of every part" })] : "",
    element("div", { class: "chart-bar" },
      element("h4", null, "residuals"),
      choiceOf("Residuals against", [["feature", "feature"], ["fitted", "fitted value"]], view.against,
        (value) => { view.against = value; view.redraw(); remember(); })),
    element("div", { id: "residual-chart", class: "chart", role: "img", "aria-label": "Residuals" }),
  ];
}

function featureChoice(names, feature) {
  if (names.length < 2) return "";
  const choose = (event) => { view.feature = event.target.value; view.redraw(); remember(); };
  const options = names.map((name) => element("option", { value: name, dir: "auto", selected: name === feature() }, name));
  return element("label", null, "against ", element("select", { id: "feature", onchange: choose, "aria-label": "Feature on the horizontal axis" }, options));
}

// Switches that only some components need: colours by law or run, the laws not told apart.
function chartSwitches(data) {
  const model = modelOf(data);
  const others = model.scopes.reduce((count, scope) => count + scope.alternatives.length, 0);
  const change = (field) => (value) => { view[field] = value; view.redraw(); remember(); };
  return [
    model.several ? choiceOf("Colour of the points", [["scope", "by law"], ["run", "by run"]], view.colour, change("colour")) : "",
    model.several ? tick("bands", bandsShown(model), `${CONFIDENCE.words} of calls`, change("bands")) : "",
    others ? tick("alternatives", view.alternatives, `${plural(others, "law")} not told apart`, change("alternatives")) : "",
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
  // A slider being dragged must not be replaced: only another feature on the axis makes others of them.
  const held = document.getElementById("held");
  if (held.dataset.feature !== String(feature)) {
    held.dataset.feature = String(feature);
    held.replaceChildren(...heldBar(data, feature, () => { curves(); remember(); }));
  }
  curves();
  if (document.getElementById("density-chart")) drawDensity(data, log);
  drawResiduals(data, feature, log);
}
