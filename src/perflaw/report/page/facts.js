// The words about a selected component: its laws, their evidence, what they predict.

function lawSection(title, law, condition) {
  return element("section", { class: "law" },
    element("h3", null, title, " ", condition ?? ""),
    law.reason ? named("p", { class: `reason is-${law.verdict}` }, law.reason) : "",
    element("div", { class: "expression" }, named("code", null, law.expression), copyButton(law.expression)),
    predictionTable(law.predictions),
    factList(law.facts),
    alternatives(law.alternatives));
}

function factList(facts) {
  return element("dl", null, facts.map(([name, value]) => [element("dt", null, name), named("dd", null, value)]));
}

function predictionTable(rows) {
  if (!rows.length) return "";
  const heads = ["at", "expected", `${CONFIDENCE.words} of the mean`, `${CONFIDENCE.words} of a new run`];
  return element("table", { class: "plain predictions" },
    element("thead", null, element("tr", null, heads.map((text, i) =>
      element("th", { scope: "col", class: i ? "number" : null }, text)))),
    element("tbody", null, rows.map((cells) => element("tr", null, cells.map((text, i) =>
      named("td", { class: i ? "number" : null }, text))))));
}

function alternatives(laws) {
  if (!laws.length) return "";
  return element("div", { class: "alternatives" },
    element("h4", null, "not told apart from it by the data"),
    element("ul", null, laws.map((other) => element("li", null,
      named("code", null, other.expression),
      named("span", { class: "quiet" }, ` ${other.family}, ${other.slope}, score ${other.delta} worse`)))));
}

function featureList(detail) {
  if (!detail.features.length) return element("p", { class: "features quiet" }, "No feature was read of it.");
  const used = new Set(detail.used);
  const items = detail.features.map((name, i) => [i ? ", " : "", named(used.has(name) ? "b" : "span", null, name)]);
  const end = used.size && used.size < detail.features.length ? " (bold: in the law)" : "";
  return element("p", { class: "features" }, element("span", { class: "quiet" }, "features read: "), items,
    element("span", { class: "quiet" }, end));
}

// The condition as it is read, with the language's own text for who wants to copy it.
function scopeTitle(scope, model, several) {
  const parts = [];
  if (scope.condition) parts.push(named("span", { class: "condition", title: scope.condition }, model.label), ": ");
  if (scope.probability !== "100 %") parts.push(`${scope.probability} of the calls${scope.condition ? " there" : ""}: `);
  else if (several && !scope.condition) parts.push("everywhere else: ");
  return element("span", { class: "scope" }, parts, named("span", { class: "readable" }, scope.text));
}
