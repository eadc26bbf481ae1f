// One function of the call-path view: the paper's Table 1, its call paths drawn, its durations, the paths of each group.

function card(title, ...content) {
  return element("section", { class: "panel" }, element("h3", null, title), content.flat(Infinity).filter((one) => one != null && one !== ""));
}

const behaviourKey = (place) => element("span", { class: `behaviour-key g${place % BEHAVIOURS}` }, String(place + 1));

function mineScreen(one, row) {
  const head = element("div", { class: "detail-title" },
    element("h2", null, named("span", null, row.component), element("span", { class: "quiet" }, ` ${row.metric}`)),
    element("dl", { class: "facts-row" }, one.facts.map(([key, value]) => element("div", null, element("dt", null, key), element("dd", null, value)))),
    one.notes.map((note) => named("p", { class: "quiet small" }, note)));
  const graph = card("Call paths", graphKey(one), element("div", { class: "graph-scroll calls-scroll", tabindex: "0", "aria-label": "Graph" }, drawCalls(one.graph)),
    one.graph.left ? element("p", { class: "small quiet" }, `${counted(one.graph.left, "call path")} with fewer calls not drawn`) : "");
  const durations = one.histogram ? card("Durations", durationBars(one.histogram), one.histogram.zeros ? element("p", { class: "small quiet" }, `${one.histogram.zeros} calls took no time by the clock`) : "") : "";
  return [head, element("div", { class: "mine-panels" }, element("div", null, assertionCard(one), durations, pathsCard(one)), element("div", null, graph))];
}

const graphKey = (one) => element("p", { class: "legend small quiet" }, one.groups.slice(0, BEHAVIOURS).map((_, i) => [behaviourKey(i), "\u00a0 "]),
  "calls of one group alone; grey: of several", one.unknown.all ? "; dotted: of paths without a group" : "");

function assertionCard(one) {
  const heads = ["", "when", "calls", ...one.clusters];
  const rows = one.groups.map((group, i) => [behaviourKey(i), [foreign(group.text.when, group.expression), group.text.mislabelled ? element("span", { class: "quiet small" }, ` (${group.text.mislabelled} of its calls otherwise)`) : ""],
    group.text.calls, ...group.text.shares.map((text, cluster) => [element("b", null, text), partBar(group.distribution[cluster], i)])]);
  const elsewhere = one.groups.flatMap((group, i) => group.behaviours.map(({ platform, shares }) => [behaviourKey(i), foreign(platform), ...shares]));
  return card("Expected of each group", element("div", { class: "assertions", tabindex: "0", role: "region", "aria-label": "Expected of each group" }, plainTable(heads, rows, heads.map((_, i) => i).slice(2))),
    one.edges.map(({ name, edge }) => element("p", { class: "small edge" }, element("b", null, name), "  ", foreign(edge))),
    one.platforms.length > 1 ? [element("h4", null, "by machine"), plainTable(["machine", "borders"], one.platforms.map(({ host, borders }) => [foreign(host), borders])),
      elsewhere.length ? plainTable(["", "machine", ...one.clusters], elsewhere, one.clusters.map((_, i) => i + 2)) : ""] : "");
}

function partBar(share, group) {
  const fill = element("span", { class: `part g${group % BEHAVIOURS}` });
  fill.style.width = asPercent(share);
  return element("span", { class: "parts", "aria-hidden": "true" }, fill);
}

function pathsCard(one) {
  const lists = one.groups.map((group, i) => pathList(`${counted(group.paths.all, "call path")}, ${group.text.calls} calls`, group.paths, behaviourKey(i)));
  if (one.unknown.all) lists.push(pathList(`${counted(one.unknown.all, "call path")} with too few calls to belong to a group`, one.unknown, ""));
  return card("Call paths of each group", lists);
}

function pathList(words, { all, shown }, key) {
  const more = all > shown.length ? element("li", { class: "quiet" }, `${all - shown.length} more (--json holds all)`) : "";
  return element("details", null, element("summary", null, key, " ", words),
    element("ul", { class: "small" }, shown.map((path) => element("li", null, foreign(path.path.join(" → ")), element("span", { class: "quiet" }, ` ${path.calls}`))), more));
}

// What the loop over a running program decided, and what that cost.
function journalCard({ decisions, spent, budget }) {
  const heads = ["at", "what", "of", "why", "utility", "cost", "found"];
  const rows = decisions.map(([at, what, names, why, utility, cost, found]) => [at, what, foreign(names), why, utility, cost, foreign(found)]);
  return card("How it was measured in the running program",
    element("details", { open: true }, element("summary", null, "What was spent"), element("p", { class: "quiet small" }, budget), element("div", { class: "graph-scroll journal", tabindex: "0", role: "region", "aria-label": "What was spent" }, plainTable(mine.spent_heads, spent, [...Array(mine.spent_heads.length - 1).keys()]))),
    element("details", null, element("summary", null, counted(decisions.length, "decision")), element("div", { class: "graph-scroll journal", tabindex: "0", role: "region", "aria-label": "Decisions" }, plainTable(heads, rows, [4]))));
}

const BARS = { width: 640, height: 240, left: 26, right: 26, top: 30, bottom: 48 };

function durationBars(data) {
  const n = data.groups[0].length, inner = BARS.width - BARS.left - BARS.right, bottom = BARS.height - BARS.bottom;
  const x = (at) => BARS.left + ((at - data.low) / (data.width * n)) * inner;
  const sums = Array.from({ length: n }, (_, i) => data.groups.reduce((sum, bars) => sum + bars[i], 0));
  const most = Math.max(1, ...sums), y = (calls) => (calls / most) * (bottom - BARS.top);
  const svg = shape("svg", { class: "durations", viewBox: `0 0 ${BARS.width} ${BARS.height}`, role: "img", "aria-label": "Durations, with the borders between quick and slow calls" },
    data.ticks.map((tick) => [shape("path", { class: "rule", d: `M${x(tick.at)},${BARS.top} V${bottom}` }), shape("text", { class: "tick", x: x(tick.at), y: bottom + 19 }, tick.text)]),
    shape("path", { class: "rule", d: `M${BARS.left},${bottom} H${BARS.width - BARS.right}` }), shape("text", { class: "tick", x: BARS.width / 2, y: BARS.height - 4 }, "duration"));
  for (let i = 0; i < n; i += 1) svg.append(...stackOf(data, i, x, y, bottom));
  for (const border of data.borders) {
    svg.append(shape("path", { class: "border", d: `M${x(border.at)},${BARS.top - 6} V${bottom}` }), shape("text", { class: "border-text", x: x(border.at), y: BARS.top - 11 }, border.text));
  }
  return svg;
}

function stackOf(data, i, x, y, bottom) {
  const left = x(data.low + i * data.width), width = Math.max(0.5, x(data.low + (i + 1) * data.width) - left - 0.3);
  let top = bottom;
  return data.groups.map((bars, group) => {
    if (!bars[i]) return null;
    top -= y(bars[i]);
    return shape("rect", { class: `duration g${group % BEHAVIOURS}`, x: left, y: top, width, height: y(bars[i]) }, shape("title", null, `group ${group + 1}: ${bars[i].toLocaleString("en")} calls`));
  }).filter(Boolean);
}
