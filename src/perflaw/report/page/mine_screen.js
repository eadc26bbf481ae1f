// One function: the paper's Table 1, its call paths drawn, its durations, the paths of each behaviour.

function card(title, ...content) {
  return element("section", { class: "panel" }, element("h3", null, title), content.flat(Infinity).filter((one) => one != null && one !== ""));
}

const behaviourKey = (place) => element("span", { class: `behaviour-key g${place % BEHAVIOURS}` }, String(place + 1));

function mineScreen(one, row) {
  const head = element("div", { class: "detail-title" },
    element("h2", null, named("span", null, row.name), element("span", { class: "quiet" }, ` ${row.metric}`)),
    element("dl", { class: "facts-row" }, one.facts.map(([key, value]) => element("div", null, element("dt", null, key), element("dd", null, value)))),
    one.notes.map((note) => named("p", { class: "quiet small" }, note)));
  const graph = card("Call paths", graphKey(one), element("div", { class: "graph-scroll calls-scroll", tabindex: "0", "aria-label": "Graph" }, drawCalls(one.graph)),
    one.graph.left ? element("p", { class: "small quiet" }, `${plural(one.graph.left, "call path")} of fewer calls not drawn`) : "");
  const durations = one.histogram ? card("Durations", durationBars(one.histogram), one.histogram.zeros ? element("p", { class: "small quiet" }, `${one.histogram.zeros} calls took no time by the clock`) : "") : "";
  return [head, element("div", { class: "mine-panels" }, element("div", null, assertionCard(one), durations, pathsCard(one)), element("div", null, graph))];
}

const graphKey = (one) => element("p", { class: "legend small quiet" }, one.groups.slice(0, BEHAVIOURS).map((_, i) => [behaviourKey(i), "\u00a0 "]),
  "calls of one behaviour alone; grey: of several", one.unknown.all ? "; dotted: of paths that belong nowhere" : "");

function assertionCard(one) {
  const heads = ["", "when", "calls", ...one.clusters];
  const rows = one.groups.map((group, i) => [behaviourKey(i), [foreign(group.when, group.full), group.mislabelled ? element("span", { class: "quiet small" }, ` (${group.mislabelled} of its calls otherwise)`) : ""],
    group.calls, ...group.texts.map((text, cluster) => [element("b", null, text), partBar(group.shares[cluster], i)])]);
  const elsewhere = one.groups.flatMap((group, i) => group.behaviours.map(({ platform, texts }) => [behaviourKey(i), foreign(platform), ...texts]));
  return card("Expected of each behaviour", element("div", { class: "assertions" }, plainTable(heads, rows, heads.map((_, i) => i).slice(2))),
    one.legend.map(({ name, edge }) => element("p", { class: "small edge" }, element("b", null, name), "  ", foreign(edge))),
    one.platforms.length > 1 ? [element("h4", null, "by machine"), plainTable(["machine", "borders"], one.platforms.map(({ host, borders }) => [foreign(host), borders])),
      elsewhere.length ? plainTable(["", "machine", ...one.clusters], elsewhere, one.clusters.map((_, i) => i + 2)) : ""] : "");
}

function partBar(share, group) {
  const fill = element("span", { class: `part g${group % BEHAVIOURS}` });
  fill.style.width = asPercent(share);
  return element("span", { class: "parts", "aria-hidden": "true" }, fill);
}

function pathsCard(one) {
  const told = one.groups.map((group, i) => pathList(`${plural(group.paths.all, "call path")}, ${group.calls} calls`, group.paths, behaviourKey(i)));
  if (one.unknown.all) told.push(pathList(`${plural(one.unknown.all, "call path")} of too few calls to belong anywhere`, one.unknown, ""));
  return card("Call paths of each behaviour", told);
}

function pathList(words, { all, told }, key) {
  const more = all > told.length ? element("li", { class: "quiet" }, `${all - told.length} more (--json tells all)`) : "";
  return element("details", null, element("summary", null, key, " ", words),
    element("ul", { class: "small" }, told.map((path) => element("li", null, foreign(path.names.join(" → ")), element("span", { class: "quiet" }, ` ${path.calls}`))), more));
}
