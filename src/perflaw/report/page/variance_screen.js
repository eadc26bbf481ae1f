// One function's screen: the eight answers, most wanted first.

function panel(title, ...content) {
  const known = content.flat(Infinity).filter((one) => one != null && one !== "");
  return element("section", { class: "panel" }, element("h3", null, title), known.length ? known : element("p", { class: "quiet" }, "unknown"));
}

function screenOf(one, f) {
  const { name, place } = functionOf(f);
  const head = element("div", { class: "detail-title" },
    element("h2", null, "Why is ", named("span", null, name), " sometimes slow?"), place ? named("p", { class: "quiet" }, place) : "",
    element("p", { class: "verdict" }, badgeOf(one.headline), ` ${metricNow().label} ${one.headline.verdict}`, one.headline.ratio ? `; ${one.headline.ratio}` : ""),
    element("dl", { class: "facts-row" }, one.facts.map(([key, value]) => element("div", null, element("dt", null, key), element("dd", null, value)))));
  return [head, element("div", { class: "panels" }, budgetPanel(one),
    element("div", null, mechanismPanel(one), groupsPanel(one), driversPanel(one, name), contextsPanel(one)), element("div", null, causePanel(one), deadlinePanel(one)),
    exemplarsPanel(one, name))];
}

const CAUSES = { work: "work", interference: "interference", steady: "steady", unknown: "unknown" };
const badgeOf = (headline) => element("span", { class: `badge cause-${headline.cause}` }, CAUSES[headline.cause]);

function budgetPanel({ budget }) {
  const title = "What a slow call spends more";
  if (!budget) return wide(panel(title, element("p", { class: "quiet" }, "Unknown: no sampled call is slower than the median.")));
  const scale = scaleOf(budget.rows.flatMap((row) => [row.share, row.low, row.high, row.net]));
  const rows = budget.rows.map((row) => [
    foreign(row.where, row.full), [shareBar(row.share, scale, "is-budget", row.low, row.high), shareBar(row.net, scale, "is-net")],
    element("b", null, row.text), row.between, row.netText, row.mechanism, row.off]);
  return wide(panel(title,
    element("p", null, `A call beyond p99 costs ${budget.tail}, one near the median ${budget.median}: ${budget.more} more, divided by call path; the shares add up to 100 %.`),
    stackedBar(budget.rows),
    element("p", { class: "legend small quiet" }, element("span", { class: "key k-budget" }), `share of the difference, line: ${CONFIDENCE.words} interval  `, element("span", { class: "key k-net" }), "cf_net: share of the variance over all calls"),
    element("div", { class: "budget" }, foldedTable(["call path", "", "share", CONFIDENCE.words, "of variance", "because of", "off CPU"], rows, [2, 3, 4, 6])),
    [budget.left, budget.estimated ? "* divided as the covariances say: samples hold direct callees alone" : "", ...budget.further].filter(Boolean).map((words) => element("p", { class: "small quiet" }, words))));
}

function wide(made) {
  made.classList.add("wide");
  return made;
}

function causePanel(one) {
  const parts = [element("p", null, one.cause)];
  if (!one.beside) return panel("Work or interference", parts, plainTable(["metric", "CoV"], one.covs.map(({ name, text }) => [name, text]), [1]));
  const { metrics, rows } = one.beside, scale = scaleOf(rows.flatMap((row) => row.nets));
  const cells = rows.map((row) => [foreign(row.name), ...row.nets.map((net) => [shareBar(net, scale, "is-net"), element("span", { class: "beside" }, net == null ? "unknown" : `${Math.round(net * 100)} %`)])]);
  return panel("Work or interference", parts,
    plainTable(["share of the variance", ...metrics.map(({ label }) => label)], [["CoV", ...metrics.map(({ cov }) => cov)], ...cells]),
    element("p", { class: "small quiet" }, "What varies by wall time alone, and not by CPU time or recorded calls, is no work of the program's."));
}

function mechanismPanel({ parts }) {
  const rows = parts.map((part) => [foreign(part.name, part.full), part.shares ? splitBar(part.shares) : element("span", { class: "quiet" }, part.mechanism), part.mean, part.net, part.self]);
  return panel("Mechanism: what of each call varies", splitLegend(),
    element("div", { class: "mechanism" }, foldedTable(["call", "its variance is", "mean", "cf_net", "cf_self"], rows, [2, 3, 4])));
}

function groupsPanel({ groups }) {
  return panel("Groups that cancel or vary in step", groups.length
    ? element("ul", null, groups.map((group) => element("li", null, group.parts.map((name, i) => [i ? ", " : "", foreign(name)]), ` ${group.words}`)))
    : element("p", { class: "quiet" }, "None: the calls vary independently of each other."));
}

function driversPanel({ drivers, driven }, name) {
  return panel("Driver: which argument it follows", drivers.length
    ? element("ul", null, drivers.map((one) => element("li", null, foreign(one.of), " follow ", element("b", null, foreign(one.feature)), ": ", foreign(one.law), ` (R² ${one.r2})`)))
    : element("p", { class: "quiet" }, driven ? "Unknown: no recorded feature explains most of it."
      : ["Not learnt for the page: ", element("code", null, `perflaw variance ${name} --metric ${metricNow().name}`)]));
}

function contextsPanel({ contexts }) {
  const rows = contexts.rows.map((one) => [
    element("span", { class: `badge ${one.high ? "cause-interference" : ""}` }, one.high ? "high" : one.few ? "few calls" : "steady"),
    named("span", { class: "clip2", title: one.from }, ending(one.from, 90) + (one.line ? `:${one.line}` : "")), one.covText, one.mean, one.n]);
  const more = contexts.all > contexts.rows.length ? `; ${contexts.rows.length} shown` : "";
  return panel("Contrast: the same function elsewhere",
    element("p", { class: "quiet" }, `${plural(contexts.all, "calling context")}, ${contexts.high} of high variance${more}`),
    plainTable(["", "called from", "CoV", "mean", "calls"], rows, [2, 3, 4]));
}

function deadlinePanel({ deadlines }) {
  if (!deadlines) return panel("Deadlines");
  return panel("Deadlines: P(cost > d)", deadlineCurve(deadlines),
    element("p", { class: "legend small quiet" }, element("span", { class: "key k-seen" }), `recorded, with ${CONFIDENCE.words} interval  `, element("span", { class: "key k-bound" }), "at most, by Chebyshev"),
    plainTable(["calls that miss", "recorded deadline", CONFIDENCE.words, "by Chebyshev"], deadlines.bounds, [0, 1, 2, 3]));
}

function exemplarsPanel({ exemplars, perfetto }, name) {
  if (!exemplars.length) return wide(panel("Calls to look at"));
  // The metric itself comes first, and once.
  const further = [["time", "wall time", (one) => one.time], ["cpu", "CPU time", (one) => one.cpu]].filter(([key]) => key !== metricNow().name);
  const rows = exemplars.map((one) => [one.reason, one.x, ...further.map(([, , read]) => read(one)), named("span", { title: one.path }, `${one.run} at ${one.at}`),
    one.callees.map((words, i) => [i ? ", " : "", foreign(words)]), one.features ? foreign(one.features) : "unknown"]);
  const button = element("button", { type: "button", class: "download", onclick: () => download(`${name.replace(/[^\w.-]+/g, "_").slice(0, 60) || "function"}.perfetto.json`, perfetto) }, "download these calls as Perfetto JSON");
  return wide(panel("Calls to look at", element("p", { class: "quiet" }, button, " opens in ui.perfetto.dev; within a call its callees stand dearest first."),
    element("div", { class: "exemplars" }, plainTable(["", metricNow().label, ...further.map(([, label]) => label), "run, start", "dearest callees", "arguments"], rows, [1, 2, 3].slice(0, 1 + further.length)))));
}

function download(file, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = element("a", { href: address, download: file });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
