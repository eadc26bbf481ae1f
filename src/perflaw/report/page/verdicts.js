// The verdicts of `perflaw check` or `perflaw diff`: a forest plot above the table, marks in it, words beside the charts.

const OUTCOMES = ["violated", "inconclusive", "out of scope", "holds"];
const badgeClass = { violated: "violated", inconclusive: "inconclusive", "out of scope": "out", holds: "holds" };
const outcomesOf = (index) => (report.outcomes?.rows ?? []).filter((one) => one.index === index);

// A row of the table shows the gravest verdict on its component.
function markOutcomes() {
  for (const { index, verdict, better } of report.outcomes?.rows ?? []) {
    if (index == null) continue;
    const row = report.rows[index];
    if (row.outcome == null || OUTCOMES.indexOf(verdict) < OUTCOMES.indexOf(row.outcome)) Object.assign(row, { outcome: verdict, better });
  }
}

const outcomeBadge = (row) => (row.outcome ? element("div", null, outcomeMark(row.outcome, row.better)) : "");
// A sign before the word tells a verdict from the claim of a law, which uses the same words.
const SIGNS = { violated: "✗", inconclusive: "?", "out of scope": "○", holds: "✓" };
const outcomeMark = (verdict, better = false) => element("span", { class: `badge is-${badgeClass[verdict] ?? "none"}` },
  `${SIGNS[verdict]} ${better ? "better" : outcomeWords(verdict)}`);
const outcomeWords = (verdict) => (report.outcomes.verb === "diff" ? { violated: "worse", holds: "not worse", "out of scope": "on one side" }[verdict] ?? verdict : verdict);

function outcomeChoices() {
  const counts = report.outcomes.counts;
  const kinds = OUTCOMES.map((verdict) => [verdict, `${(counts[verdict] ?? 0).toLocaleString("en")} ${outcomeWords(verdict)}`, !counts[verdict]]);
  return [["all", report.outcomes.verb === "diff" ? "any change" : "any verdict"], ...kinds];
}

// More rows stand behind a button: thousands of laws may hold.
const MOST_FOREST = 60;

function showOutcomes() {
  const { outcomes } = report;
  if (!outcomes) return;
  const section = document.getElementById("outcomes");
  section.hidden = false;
  section.append(element("h2", null, outcomes.title), element("p", { class: "quiet" }, outcomes.summary));
  if (outcomes.rows.length) section.append(forest(outcomes.rows));
}

function forest(rows) {
  const scale = ratioScale(rows);
  const body = element("tbody", null, rows.slice(0, MOST_FOREST).map((one) => forestRow(one, scale)));
  const heads = [["component", ""], ["verdict", ""], [report.outcomes.effect, "number"], ["", "effect"]];
  const head = element("tr", null, heads.map(([text, kind], i) => element("th", { scope: "col", class: kind }, i === 3 ? [element("span", { class: "unseen" }, "effect, and its interval"), ratioTicks(scale)] : text)));
  const table = element("table", { class: "forest", id: "forest" }, element("thead", null, head), body);
  const more = rows.length > MOST_FOREST ? element("button", { type: "button", class: "link", onclick: (event) => {
    body.append(...rows.slice(MOST_FOREST).map((one) => forestRow(one, scale)));
    event.target.remove();
  } }, `show all ${rows.length.toLocaleString("en")}`) : "";
  return element("div", { class: "forest-scroll" }, table, more);
}

function forestRow(one, scale) {
  const go = () => { showView("components"); if (isHidden(one.index)) clearFilters(); select(one.index); };
  const name = one.index == null ? named("span", null, one.component) : element("button", { type: "button", class: "link", onclick: go }, element("bdi", null, one.component));
  const path = one.path ? named("div", { class: "small quiet" }, conditionText(one.path, nodeOf(one.path_tree))) : "";
  return element("tr", { class: one.index == null ? null : "linked", "data-verdict": one.verdict, title: one.message || null },
    element("td", null, name, one.metric === "time" ? "" : element("span", { class: "quiet" }, ` ${one.metric}`), path),
    element("td", null, outcomeMark(one.verdict, one.better)),
    element("td", { class: "number" }, one.text),
    element("td", { class: "effect" }, effectMark(one, scale)));
}

// Ratios on a logarithmic axis: half and double stand equally far from 1. Ends too far out are cut.
function ratioScale(rows) {
  const ends = rows.flatMap((one) => [one.effect_low, one.effect_high, one.effect]).filter((value) => value > 0).map(Math.log2);
  const low = Math.max(-6, ends.reduce((a, b) => Math.min(a, b), -0.5)), high = Math.min(8, ends.reduce((a, b) => Math.max(a, b), 0.5));
  const pad = 0.04 * (high - low);
  const at = (ratio) => (100 * (Math.min(high, Math.max(low, ratio > 0 ? Math.log2(ratio) : low)) - low + pad)) / (high - low + 2 * pad);
  const step = Math.max(1, Math.ceil((high - low) / 7));
  const marks = Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, i) => Math.ceil(low) + i).filter((power) => power % step === 0);
  return { at, marks: marks.map((power) => 2 ** power) };
}

const percentAt = (x) => `${x.toFixed(2)}%`;

function ratioTicks(scale) {
  return shape("svg", { height: 16, "aria-hidden": "true" }, ...scale.marks.map((ratio) => shape("text", { x: percentAt(scale.at(ratio)), y: 12,
    "text-anchor": "middle", "font-size": 11, fill: "currentColor" }, `${ratio >= 1 ? ratio : `1/${1 / ratio}`}x`)));
}

function effectMark(one, scale) {
  const line = shape("line", { x1: percentAt(scale.at(1)), x2: percentAt(scale.at(1)), y1: 0, y2: 22, stroke: "var(--line)" });
  if (one.effect == null) return shape("svg", { role: "img", "aria-label": "nothing compared" }, line);
  const paint = one.verdict === "violated" ? "var(--bad)" : one.better || one.verdict === "holds" ? "var(--good)" : "var(--warn)";
  const drawn = one.effect_low == null ? [] : [shape("line", { x1: percentAt(scale.at(one.effect_low)), x2: percentAt(scale.at(one.effect_high)), y1: 11, y2: 11, stroke: paint, "stroke-width": 3 })];
  return shape("svg", { role: "img", "aria-label": one.text }, line, ...drawn, shape("circle", { cx: percentAt(scale.at(one.effect)), cy: 11, r: 4.5, fill: paint }));
}

// Every verdict on a component beside its charts, with what changed.
function outcomeSection(index) {
  return outcomesOf(index).map((one) => element("section", { class: "law outcome" },
    element("h3", null, `${report.outcomes.verb}: `, outcomeMark(one.verdict, one.better), " ", element("b", null, one.text),
      one.path ? named("span", { class: "quiet" }, ` where ${conditionText(one.path, nodeOf(one.path_tree))}`) : ""),
    one.message ? named("p", { class: `reason is-${badgeClass[one.verdict]}` }, one.message) : "",
    one.facts.length ? factList(one.facts) : "",
    one.changes.length ? changeTable(one.changes) : ""));
}

function changeTable(changes) {
  const heads = ["what", "old", "new", "ratio"];
  return element("table", { class: "plain changes" },
    element("thead", null, element("tr", null, heads.map((text, i) => element("th", { scope: "col", class: i === 3 ? "number" : null }, text)))),
    element("tbody", null, changes.map((one) => element("tr", null, named("td", null, `${one.what} ${one.name}`.trim()),
      named("td", null, one.old), named("td", null, one.new), element("td", { class: "number" }, one.ratio)))));
}

// The old law in the same chart, dashed and in a colour of its own.
function oldTraces(data, old, feature, lines, suffix) {
  if (!old?.length || feature == null || !lines.length) return [];
  const low = lines.reduce((least, line) => Math.min(least, line.x[0]), Infinity), high = lines.reduce((most, line) => Math.max(most, line.x.at(-1)), -Infinity);
  return scopesOf(old).filter((scope) => scope.law).flatMap((scope) => oldScope(data, scope, feature, low, high, suffix));
}

function oldScope(data, scope, feature, low, high, suffix) {
  const model = modelOf(data);
  const held = { ...model.all, ...typical(model.rows.filter((row) => scope.holds(row))), ...view.held };
  return regionsOf(scope, feature, held, low, high).map(([from, to], i) => {
    const x = spread(from, to, 100);
    return { type: "scatter", mode: "lines", x, y: askedAlong(scope.law, x, feature, held, data.scale).mean, showlegend: i === 0,
      name: scope.condition || scope.probability < 1 ? `old law · ${scopeName(scope)}` : "old law", legendgroup: `old ${scope.index}`, legendrank: 1500,
      line: { color: colour("bad"), width: 2, dash: "dash" }, hovertemplate: `old law: %{y:.3~s}${suffix} at %{x:.4~s}<extra></extra>` };
  });
}
