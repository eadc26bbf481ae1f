// The overview: what matters beyond the data, what is sometimes slow, what changed, and what the checks said.

const MOST_TOLD = 6;

// Of a study the best configuration matters: its knobs have ranges, beyond which nobody goes.
function drawOverview() {
  document.getElementById("overview-parts").replaceChildren(...[studyCard() ?? mattersCard(), slowCard(), changedCard(), verdictsCard(), linesCard()].filter(Boolean));
}

const tile = (title, id, ...content) => element("section", { class: "tile", id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title), ...content);
const nameLink = (name, key, text) => element("a", { class: "name", href: linkTo(name, key) }, element("bdi", null, inParts(text)));
// A long name may be broken behind a dot or an underscore.
const inParts = (name) => name.split(/(?<=\.)|(?<=[^._]_)(?=[^_])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
const further = (name, words) => element("p", { class: "further" }, element("a", { href: `#/${name}` }, words));

function mattersCard() {
  const { matters, next } = report.overview;
  if (!matters) return tile("What matters at ten times the size", "matters", element("p", null, next.why), element("code", null, next.command));
  const rows = matters.rows.slice(0, MOST_TOLD).map((row) => element("tr", null,
    element("td", null, nameLink("components", row.key, row.component), named("div", { class: "small quiet" }, row.law)),
    element("td", { class: "number" }, row.grows), element("td", { class: "number" }, row.now),
    element("td", { class: "number then" }, element("span", { class: "share" }, bar(row.share), row.then)), element("td", { class: "number" }, predictedText(row.cost))));
  return tile(`What matters at ${matters.point}`, "matters",
    element("p", null, "A run then costs ", element("b", { class: "asked" }, matters.whole), element("span", { class: "quiet" }, ` ${matters.interval}`), ` of ${matters.metric}; the largest recorded ${matters.recorded}.`),
    matters.sources.length ? element("ul", { class: "sources" }, matters.sources.map((one) => element("li", null, element("b", null, one.share), ...(one.place ? [" below ", named("code", null, one.place), ", where "] : [" where "]), named("span", null, one.caller), " calls ", named("span", null, one.callee), ` ${one.growth}`))) : "",
    rows.length ? scrolled("Functions and their part of a larger run", element("table", { class: "plain" }, element("thead", null, element("tr", null, ["function", "grows as", "part now", "part then", "cost then"].map((text, i) => element("th", { scope: "col", class: i ? "number" : null }, text)))), element("tbody", null, rows))) : element("p", null, "No single function stands out."),
    matters.around ? named("p", { class: "small quiet" }, matters.around) : "", further("components", `all ${counted(report.rows.length, "function")}`));
}

const scrolled = (label, content) => element("div", { class: "wide-scroll", tabindex: "0", role: "region", "aria-label": label }, content);

function slowCard() {
  if (!variance) return null;
  const [first] = variance.metrics;
  const rows = first.patterns.slice(0, MOST_TOLD).map((one) => {
    const [root] = one.nodes, { name } = variance.functions[root.function];
    const why = { interference: "others had the CPU", waiting: "waits" }[root.cause];
    return element("li", null, nameLink("variance", name, name), element("span", { class: "quiet" }, ` CoV ${root.text.cov}`), why ? ` ${why}` : "", one.sources.length ? named("div", { class: "small quiet" }, `from ${one.sources[0]}`) : "");
  });
  return tile("What is sometimes slow", "slow", rows.length ? element("ol", { class: "told-list" }, rows) : element("p", null, `No function's ${first.label} varies highly.`),
    rows.length ? further("variance", `all ${counted(first.patterns.length, "pattern")} of ${first.label}`) : "");
}

function changedCard() {
  const { changed } = report.overview;
  if (!changed) return null;
  const rows = changed.rows.slice(0, MOST_TOLD).map((row) => [byName(row.component), row.before, row.after, row.factor, row.calls]);
  return tile("What changed since the run before", "changed", element("p", null, changed.text),
    rows.length ? scrolled("Functions that changed", plainTable(["function", "own before", "after", "factor", "calls"], rows, [1, 2, 3, 4])) : element("p", null, "No function changed by 1 % of the whole."),
    element("p", { class: "small quiet" }, "Calls are exact; times of single runs scatter. ", element("code", null, "perflaw diff"), " tests what changed."));
}

// A function by its name, as a link where it has a law.
function byName(name) {
  const row = report.rows.find((one) => one.component === name);
  return row ? nameLink("components", row.key, name) : named("span", { class: "name" }, name);
}

function verdictsCard() {
  const newest = report.checks?.at(-1);
  const counts = report.outcomes?.counts ?? newest?.counts;
  if (!counts) return null;
  const words = OUTCOMES.filter((one) => counts[one]).map((one) => element("li", null, element("b", null, String(counts[one])), ` ${one}`));
  return tile("What the checks say", "said", element("ul", { class: "counts" }, words.length ? words : "nothing was compared"),
    report.outcomes ? "" : element("p", { class: "quiet small" }, newest.text), further("checks", report.checks ? `${counted(report.checks.length, "check")} over time` : "all verdicts"));
}

function linesCard() {
  if (!trend?.clusters.length) return null;
  const rows = trend.clusters.slice(0, 4).map((one) => element("li", null, clusterSwatch(one), " ", nameLink("trends", one.representative, one.text.name), one.law ? named("div", { class: "small quiet" }, `${one.law.text.law}, at most ${one.text.max_cost} in a run`) : ""));
  return tile(`Which ${trend.noun} grow together`, "grow", element("ol", { class: "told-list plain-list" }, rows), further("trends", `all ${counted(trend.clusters.length, "cluster")}`));
}

function studyCard() {
  const one = report.exploration;
  if (!one) return null;
  return tile("The best configuration", "configured", element("p", null, one.heading),
    one.best ? element("dl", null, Object.entries(one.best.text.settings).map(([name, value]) => [element("dt", null, name), named("dd", null, value)])) : "",
    one.best ? element("p", { class: "reached" }, "measured: ", Object.entries(one.best.text.measured).map(([name, value], i) => [i ? " · " : "", name, " ", element("b", null, value)])) : "", further("exploration", `all ${counted(one.trials.length, "trial")}`));
}

// The checks: the verdicts given, and those of earlier checks by commit.
function drawChecks() {
  const box = document.getElementById("history");
  if (!report.checks) return;
  const most = Math.max(...report.checks.map((one) => OUTCOMES.reduce((sum, kind) => sum + (one.counts[kind] ?? 0), 0)), 1);
  const rows = [...report.checks].reverse().map((one) => [one.when, element("code", null, one.commit || "—"), one.laws,
    element("span", { class: "verdict-bar", role: "img", "aria-label": one.text }, OUTCOMES.map((kind) => { const part = element("span", { class: `is-${badgeClass[kind]}` }); part.style.width = `${(100 * (one.counts[kind] ?? 0)) / most}%`; return part; })), one.text,
    one.violated.map((name, i) => [i ? ", " : "", byName(name)])]);
  box.replaceChildren(element("h2", null, "History of checks"), scrolled("Checks by commit", plainTable(["when", "commit", "laws", "shares", "verdicts", "violated"], rows)));
}
