// The selected component: its name, its charts beside its words.

// What the person chose for the charts; null means the page's own choice.
const view = { axes: null, against: "feature", redraw: () => {} };

async function showDetail(index) {
  const row = report.rows[index];
  const detail = report.details[index];
  const data = await chartData(index);
  if (selected !== index) return; // another row was selected while this one was inflated
  const names = chartFeatures(data);
  const chosen = { feature: names[0] ?? null };
  const redraw = (view.redraw = () => drawCharts(data, chosen.feature));
  document.getElementById("detail").replaceChildren(
    title(row, detail),
    element("div", { class: "columns" },
      element("div", { class: "charts" }, chartArea(data, names, chosen, redraw)),
      element("div", { class: "words" }, words(row, detail))));
  redraw();
}

function title(row, detail) {
  const parameters = row.parameters.length ? `(${row.parameters.join(", ")})` : "";
  return element("header", { class: "detail-title" },
    element("h2", null, named("span", null, row.name), named("span", { class: "quiet" }, parameters), " ", badge(row.verdict)),
    element("p", { class: "quiet" }, named("span", null, row.place), row.place ? " · " : "",
      `${row.shares[0]} of the ${row.metric}, ${row.shares[1]} without its callees · ${row.callsText} calls · ${detail.total} in all`));
}

function words(row, detail) {
  const several = detail.scopes.length > 1;
  const laws = detail.scopes.map((scope) => lawSection("", scope, scopeTitle(scope, several)));
  const run = detail.run;
  return [
    featureList(detail),
    ...laws,
    run ? lawSection("per run:", { ...run, predictions: runPredictions(run, detail) }, named("span", { class: "readable" }, run.text)) : "",
  ];
}

// What was asked by --at comes first, unless the law was already asked there.
function runPredictions(run, detail) {
  const known = new Set(run.predictions.map((cells) => cells[0]));
  return [...detail.predicted.filter((cells) => !known.has(cells[0])), ...run.predictions];
}

function chartArea(data, names, chosen, redraw) {
  if (!data.y?.length) return element("p", { class: "quiet" }, "No points were kept for a chart.");
  const choose = (event) => { chosen.feature = event.target.value; redraw(); };
  const select = element("select", { id: "feature", onchange: choose, "aria-label": "Feature on the horizontal axis" },
    names.map((name) => element("option", { value: name, dir: "auto" }, name)));
  return [
    element("div", { class: "chart-bar" },
      names.length > 1 ? element("label", null, "against ", select) : "",
      element("span", { id: "axes" }),
      element("span", { id: "chart-note", class: "quiet small" })),
    element("div", { id: "law-chart", class: "chart", role: "img", "aria-label": "Points, law and bands" }),
    element("div", { class: "chart-bar" },
      element("h4", null, "residuals"),
      choiceOf("Residuals against", [["feature", "feature"], ["fitted", "fitted value"]], view.against,
        (value) => { view.against = value; redraw(); })),
    element("div", { id: "residual-chart", class: "chart", role: "img", "aria-label": "Residuals" }),
  ];
}

function drawCharts(data, feature) {
  if (!data.y?.length) return;
  const log = view.axes ? view.axes === "log" : suitsLog(data, feature);
  document.getElementById("axes").replaceChildren(choiceOf("Axes", [["log", "log–log"], ["linear", "linear"]],
    log ? "log" : "linear", (value) => { view.axes = value; drawCharts(data, feature); }));
  drawLaw(data, feature, log);
  drawResiduals(data, feature, log);
}
