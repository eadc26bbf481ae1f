// One function of the variance view: eight answers about its cost, the most wanted first, with their bars and curves.

function panel(title, ...content) {
  const known = content.flat(Infinity).filter((one) => one != null && one !== "");
  return element("section", { class: "panel" }, element("h3", null, title), known.length ? known : element("p", { class: "quiet" }, "unknown"));
}

function screenOf(one, f) {
  const { name, place } = functionOf(f);
  const head = element("div", { class: "detail-title" },
    element("h2", null, "Why is ", named("span", null, name), " sometimes slow?"), place ? named("p", { class: "quiet" }, place) : "",
    element("p", { class: "verdict" }, badgeOf(one.cause), ` ${metricNow().label} ${one.text.verdict}`, one.text.ratio ? `; ${one.text.ratio}` : ""),
    element("dl", { class: "facts-row" }, one.facts.map(([key, value]) => element("div", null, element("dt", null, key), element("dd", null, value)))));
  return [head, element("div", { class: "panels" }, latencyOf(one), budgetPanel(one),
    element("div", null, mechanismPanel(one), groupsPanel(one), driversPanel(one, name), contextsPanel(one)), element("div", null, causePanel(one), deadlinePanel(one)),
    exemplarsPanel(one, name))];
}

// The latency of a coroutine stands first: all other answers but deadlines are about the time in its own code and callees.
function latencyOf({ latency }) {
  if (!latency) return "";
  const rows = latency.awaits.map((one) => [foreign(one.name, one.path), one.share, one.mean]);
  return wide(panel("Latency, from the call to the result",
    element("p", null, element("b", null, latency.verdict), `; ${latency.awaiting} of its variance is awaiting. Deadlines are of it; all other answers are about the time in its own code and callees.`),
    element("dl", { class: "facts-row" }, latency.facts.map(([key, value]) => element("div", null, element("dt", null, key), element("dd", null, value)))),
    plainTable(["it awaits", "of variance", "mean"], rows, [1, 2])));
}

const badgeOf = (cause) => element("span", { class: `badge cause-${cause}` }, cause);

function budgetPanel({ budget }) {
  const title = "What a slow call spends more";
  if (!budget) return wide(panel(title, element("p", { class: "quiet" }, "Unknown: no sampled call is slower than the median.")));
  const scale = scaleOf(budget.rows.flatMap((row) => [row.share, row.share_low, row.share_high, row.cf_net]));
  const rows = budget.rows.map((row) => [
    foreign(row.text.where, row.text.path), [shareBar(row.share, scale, "is-budget", row.share_low, row.share_high), shareBar(row.cf_net, scale, "is-net")],
    element("b", null, row.text.share), row.text.interval, row.text.cf_net, row.mechanism, row.text.off_cpu]);
  return wide(panel(title,
    element("p", null, `A call beyond p99 costs ${budget.text.tail}, one near the median ${budget.text.median}: ${budget.text.more} more, divided by call path; the shares add up to 100 %.`),
    stackedBar(budget.rows),
    element("p", { class: "legend small quiet" }, element("span", { class: "key k-budget" }), `share of the difference, line: ${CONFIDENCE.words} interval  `, element("span", { class: "key k-net" }), "cf_net: share of the variance over all calls"),
    element("div", { class: "budget" }, foldedTable(["call path", "", "share", CONFIDENCE.words, "of variance", "because of", "off CPU"], rows, [2, 3, 4, 6])),
    [budget.text.left, budget.estimated ? "* estimated from covariances: samples hold the costs of direct callees alone" : "", ...budget.text.further].filter(Boolean).map((words) => element("p", { class: "small quiet" }, words))));
}

function wide(made) {
  made.classList.add("wide");
  return made;
}

function causePanel(one) {
  const parts = [element("p", null, one.text.cause)];
  if (!one.beside) return panel("Work, waiting or interference", parts, plainTable(["metric", "CoV"], one.covs.map(({ name, text }) => [name, text]), [1]));
  const { metrics, rows } = one.beside, scale = scaleOf(rows.flatMap((row) => row.nets));
  const cells = rows.map((row) => [foreign(row.name), ...row.nets.map((net) => [shareBar(net, scale, "is-net"), element("span", { class: "beside" }, net == null ? "unknown" : `${Math.round(net * 100)} %`)])]);
  return panel("Work, waiting or interference", parts,
    plainTable(["share of the variance", ...metrics.map(({ label }) => label)], [["CoV", ...metrics.map(({ cov }) => cov)], ...cells]),
    element("p", { class: "small quiet" }, "A cost that varies by wall time alone, and not by CPU time or recorded calls, is not work: the program waits, or others have its CPU."));
}

function mechanismPanel({ parts }) {
  const rows = parts.map((part) => [foreign(part.text.name, part.text.path), part.shares ? splitBar(part.shares) : element("span", { class: "quiet" }, part.mechanism), part.text.mean, part.text.cf_net, part.text.cf_self]);
  return panel("Mechanism: why the cost of each call varies", splitLegend(),
    element("div", { class: "mechanism" }, foldedTable(["call", "its variance is", "mean", "cf_net", "cf_self"], rows, [2, 3, 4])));
}

function groupsPanel({ groups }) {
  return panel("Groups that cancel or vary in step", groups.length
    ? element("ul", null, groups.map((group) => element("li", null, group.parts.map((name, i) => [i ? ", " : "", foreign(name)]), ` ${group.text}`)))
    : element("p", { class: "quiet" }, "None: the calls vary independently of each other."));
}

function driversPanel({ drivers, driven }, name) {
  return panel("Driver: which argument it follows", drivers.length
    ? element("ul", null, drivers.map((one) => element("li", null, { title: one.law }, foreign(one.text))))
    : element("p", { class: "quiet" }, driven ? "Unknown: no recorded feature explains most of it."
      : ["Not learnt for the page: ", element("code", null, `perflaw variance ${name} --metric ${metricNow().name}`)]));
}

function contextsPanel({ contexts }) {
  const rows = contexts.rows.map((one) => [
    element("span", { class: `badge ${one.high ? "cause-interference" : ""}` }, one.high ? "high" : one.few ? "few calls" : "steady"),
    named("span", { class: "clip2", title: one.text.from }, ending(one.text.from, 90) + (one.line ? `:${one.line}` : "")), one.text.cov, one.text.mean, one.text.n]);
  const more = contexts.all > contexts.rows.length ? `; ${contexts.rows.length} shown` : "";
  return panel("Contrast: the same function elsewhere",
    element("p", { class: "quiet" }, `${counted(contexts.all, "calling context")}, ${contexts.high} of high variance${more}`),
    plainTable(["", "called from", "CoV", "mean", "calls"], rows, [2, 3, 4]));
}

function deadlinePanel({ deadlines, latency }) {
  if (!deadlines) return panel("Deadlines");
  return panel(latency ? "Deadlines: P(latency > d)" : "Deadlines: P(cost > d)", deadlineCurve(deadlines),
    element("p", { class: "legend small quiet" }, element("span", { class: "key k-seen" }), `recorded, with ${CONFIDENCE.words} interval  `, element("span", { class: "key k-bound" }), "at most, by Chebyshev"),
    plainTable(["calls that miss", "recorded deadline", CONFIDENCE.words, "by Chebyshev"], deadlines.bounds, [0, 1, 2, 3]));
}

function exemplarsPanel({ exemplars, perfetto }, name) {
  if (!exemplars.length) return wide(panel("Calls to look at"));
  // The metric itself comes first, and once.
  const further = [["time", "wall time", (one) => one.text.time], ["cpu", "CPU time", (one) => one.text.cpu]].filter(([key]) => key !== metricNow().name);
  const rows = exemplars.map((one) => [one.reason, one.text.x, ...further.map(([, , read]) => read(one)), named("span", { title: one.text.path }, `${one.text.run} at ${one.text.started}`),
    one.text.callees.map((words, i) => [i ? ", " : "", foreign(words)]), one.text.features ? foreign(one.text.features) : "unknown"]);
  const button = element("button", { type: "button", class: "download", onclick: () => download(`${name.replace(/[^\w.-]+/g, "_").slice(0, 60) || "function"}.perfetto.json`, perfetto) }, "download these calls as Perfetto JSON");
  return wide(panel("Calls to look at", element("p", { class: "quiet" }, button, " opens in ui.perfetto.dev; within a call, the costliest callees stand first."),
    element("div", { class: "exemplars" }, plainTable(["", metricNow().label, ...further.map(([, label]) => label), "run, start", "costliest callees", "arguments"], rows, [1, 2, 3].slice(0, 1 + further.length)))));
}

function download(file, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = element("a", { href: address, download: file });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// A share as a bar on an axis for all shares; negative ones reach to the left of zero.
function shareBar(value, scale, kind, low = null, high = null) {
  const at = (part) => (Math.min(scale.high, Math.max(scale.low, part)) - scale.low) / (scale.high - scale.low);
  const zero = at(0), end = at(value ?? 0);
  const box = element("span", { class: `vbar ${kind}`, "aria-hidden": "true" }, element("span", { class: "vfill" }));
  box.firstChild.style.cssText = `left:${asPercent(Math.min(zero, end))};width:${asPercent(Math.abs(end - zero))}`;
  if (low != null && high != null) {
    const line = element("span", { class: "whisker" });
    line.style.cssText = `left:${asPercent(at(low))};width:${asPercent(at(high) - at(low))}`;
    box.append(line);
  }
  return box;
}

function scaleOf(values) {
  const known = values.filter((value) => value != null);
  return { low: Math.min(0, ...known), high: Math.max(0.01, ...known) };
}

// All rows in one bar of 100 %; rows that cost less in the tail stand only in the table.
function stackedBar(rows) {
  const positive = rows.filter((row) => row.share > 0);
  const whole = positive.reduce((sum, row) => sum + row.share, 0) || 1;
  const parts = positive.map((row, i) => {
    const part = element("span", { class: `stack s${Math.min(i, 6)}`, title: `${row.text.share} ${row.text.where}` }, row.share / whole > 0.08 ? row.text.share : "");
    part.style.width = asPercent(row.share / whole);
    return part;
  });
  return element("div", { class: "stacked", role: "img", "aria-label": rows.map((row) => `${row.text.share} ${row.text.where}`).join(", ") }, parts);
}

const SPLITS = ["called or not", "trip count", "cost per call"];

// The three mechanisms of a part's variance as segments of one bar.
function splitBar(shares) {
  if (!shares) return "";
  const parts = shares.map((share, i) => {
    const part = element("span", { class: `split p${i}`, title: `${SPLITS[i]} ${Math.round((share ?? 0) * 100)} %` });
    part.style.width = asPercent(share ?? 0);
    return part;
  });
  return element("div", { class: "splits", role: "img", "aria-label": SPLITS.map((name, i) => `${name} ${Math.round((shares[i] ?? 0) * 100)} %`).join(", ") }, parts);
}

const splitLegend = () => element("p", { class: "legend small quiet" }, SPLITS.map((name, i) => [element("span", { class: `key p${i}` }), `${name}  `]));

const FOLDED = 10;

// A table that shows its first rows, and the others on demand.
function foldedTable(heads, rows, numbers) {
  const table = plainTable(heads, rows, numbers), rest = [...table.tBodies[0].rows].slice(FOLDED);
  if (rest.length < 3) return table;
  for (const row of rest) row.hidden = true;
  const button = element("button", { type: "button", class: "link more", onclick: () => { for (const row of rest) row.hidden = false; button.remove(); } }, counted(rest.length, "smaller row"));
  return element("div", null, table, button);
}

const foreign = (text, title = null) => named("span", { title }, text);

const CURVE = { width: 520, height: 220, left: 48, right: 12, top: 10, bottom: 34 };

function deadlineCurve(data) {
  const shown = data.d.length > 1;
  if (!shown) return null;
  const first = Math.log(data.d[0]), last = Math.log(data.d.at(-1));
  const x = (value) => CURVE.left + ((Math.log(value) - first) / (last - first)) * (CURVE.width - CURVE.left - CURVE.right);
  const floor = Math.min(0.01, ...data.observed.filter((value) => value > 0));
  const least = Math.log(floor / 2);
  const y = (value) => CURVE.top + (Math.log(Math.max(value, floor / 2)) / least) * (CURVE.height - CURVE.top - CURVE.bottom);
  const line = (values) => values.map((value, i) => `${i ? "L" : "M"}${x(data.d[i]).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const band = `${line(data.high)} ${data.low.map((_, i) => data.low.length - 1 - i).map((i) => `L${x(data.d[i]).toFixed(1)},${y(data.low[i]).toFixed(1)}`).join(" ")} Z`;
  const svg = shape("svg", { class: "curve", viewBox: `0 0 ${CURVE.width} ${CURVE.height}`, role: "img", "aria-label": "Part of the calls that exceed a deadline" },
    grid(data, x, y, floor), shape("path", { class: "curve-band", d: band }),
    shape("path", { class: "curve-bound", d: line(data.chebyshev) }), shape("path", { class: "curve-seen", d: seenLine(data, x, y) }));
  const told = element("p", { class: "small told" }, "Point at the curve to read it.");
  svg.addEventListener("pointermove", (event) => tellDeadline(event, svg, data, x, told));
  return [svg, told];
}

// The recorded curve ends at the longest call.
function seenLine(data, x, y) {
  const points = data.observed.map((value, i) => [value, i]).filter(([value]) => value > 0);
  return points.map(([value, i], place) => `${place ? "L" : "M"}${x(data.d[i]).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
}

function grid(data, x, y, floor) {
  const bottom = CURVE.height - CURVE.bottom, right = CURVE.width - CURVE.right, marks = [];
  const step = data.ticks.length > 8 ? 2 : 1;
  for (const tick of data.ticks.filter((_, i) => i % step === 0)) {
    marks.push(shape("path", { class: "rule", d: `M${x(tick.at)},${CURVE.top} V${bottom}` }), shape("text", { class: "tick mid", x: x(tick.at), y: bottom + 14 }, tick.text));
  }
  const decades = Math.ceil(-Math.log10(floor / 2));
  for (let p = 1, k = 0; p >= floor / 2; p /= 10, k += 1) {
    if (decades > 5 && k % 2) continue;
    marks.push(shape("path", { class: "rule", d: `M${CURVE.left},${y(p)} H${right}` }), shape("text", { class: "tick end", x: CURVE.left - 6, y: y(p) + 4 }, shareText(p)));
  }
  marks.push(shape("text", { class: "tick mid", x: (CURVE.left + right) / 2, y: CURVE.height - 4 }, "deadline d"));
  return marks;
}

function tellDeadline(event, svg, data, x, told) {
  const box = svg.getBoundingClientRect();
  const at = ((event.clientX - box.left) / box.width) * CURVE.width;
  const distance = (i) => Math.abs(x(data.d[i]) - at);
  const near = data.d.reduce((best, _, i) => (distance(i) < distance(best) ? i : best), 0);
  told.textContent = `longer than ${data.texts[near]}: ${shareText(data.observed[near])} (${shareText(data.low[near])}–${shareText(data.high[near])}); at most ${shareText(data.chebyshev[near])} by Chebyshev`;
}
