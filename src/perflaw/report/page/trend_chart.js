// The selected cluster: plots of its costs and residuals (trend-prof §2.3.1) beside its words.

function drawFit() {
  const one = clusterOf(looking.rank), name = trendFeature();
  if (!one?.plot || name == null || !document.getElementById("fit-chart")) return;
  const runs = runsOf(one, name);
  const log = looking.axes === "log" && runs.some(({ x, y }) => x > 0 && y > 0);
  const shown = runs.filter(({ x, y }) => !log || (x > 0 && y > 0));
  const line = fitLine(one, name);
  const traces = [...(line ? bandTraces(line, log) : []), ...(looking.others ? neighbourTraces(one, name) : []), pointTrace(one, shown), ...jointTraces(one, shown),
    ...powerTraces(one, name), ...(line ? [...namedAlone(one, name, meanTraces(line, "", false)), ...fartherTraces(one, name, line)] : [])].map((trace) => ({ showlegend: false, ...trace }));
  const { low, high } = featureOf(name);
  const reach = [Math.min(...shown.map(({ x }) => x), low > 0 ? low : Infinity), Math.max(high * 12, trendSize(name) * 1.4)];
  const across = { ...axis(shortened(name), log), range: log ? reach.map((x, i) => Math.log10(x) + (i ? 0 : -0.05)) : evenRange(low, high) };
  const upright = axis(`counts of the cluster`, log);
  const inSight = (xs, ys) => ys.filter((_, i) => xs[i] <= (log ? reach[1] : evenRange(low, high)[1]));
  const asked = costAt(one, name, trendSize(name));
  const range = verticalRange([...shown.map(({ y }) => y), ...(line ? inSight(line.x, line.mean) : []), ...(log && asked ? [asked] : [])], log);
  if (range) upright.range = range;
  drawChart("fit-chart", [...traces, markTrace(one, name)], layout(380, across, upright, { showlegend: true, shapes: line ? beyond(line, log) : [], annotations: line ? beyondWords(line, log) : [] }));
  const hidden = runs.length - shown.length;
  document.getElementById("fit-note").textContent = hidden ? `${counted(hidden, "run")} at or below zero not shown on these axes` : "";
  drawRest(one, name, shown, log);
}

// Linear axes show the data and as much again: on all that is known of the law, the data would be a corner.
const evenRange = (low, high) => (low >= 0 ? [0, high * 2] : [low - (high - low) * 0.1, high + (high - low)]);

function runsOf(one, name) {
  const { values } = featureOf(name);
  return one.plot.costs.map((y, i) => ({ x: values[i], y, i, run: trend.runs[i] })).filter(({ x, y }) => x != null && y != null);
}

const pointTrace = (one, runs) => ({
  type: "scatter", mode: "markers", name: "runs", showlegend: true, legendrank: 0, x: runs.map(({ x }) => x), y: runs.map(({ y }) => y), customdata: runs.map(({ run }) => shortened(String(run))),
  marker: { size: 7, color: ownColour(one), opacity: 0.8, line: { width: 0.5, color: colour("page") } }, hovertemplate: "%{y:.4~s} at %{x:.4~s}<br>run %{customdata}<extra></extra>",
});

const namedAlone = (one, name, traces) => (one.joint ? traces.map((trace) => ({ ...trace, name: trace.name.replace("law", `law in ${shortened(shortName(name))} alone`) })) : traces);

// The law in several features at each run; where it is right, it lies on the run's point.
function jointTraces(one, runs) {
  if (!one.joint) return [];
  const told = runs.map((run) => ({ ...run, y: bestAt(one, run.i) })).filter(({ y }) => y > 0);
  return [{ ...pointTrace(one, told), name: "law in several features, at each run", legendrank: 1, marker: { size: 11, symbol: "circle-open", color: colour("law"), line: { width: 1.2 } } }];
}

function bestAt(one, run) {
  const law = bestLaw(one);
  return law ? meanAt(law, Object.fromEntries(trend.features.map(({ name, values }) => [name, values[run]]))) : NaN;
}

// The learner's curve, else the law's expression along the axis.
function fitLine(one, name) {
  const { low, high } = featureOf(name);
  const curve = one.plot.curves[name];
  if (curve) return { ...curve, range: [low, high], first: true };
  const law = lawOf(one, name);
  if (!law || isFlat(one.laws[name])) return null;
  const grid = spread(...sizeRange(name), 80, [low, high]);
  return { x: grid, range: [low, high], first: true, ...askedAlong(law, grid, name, {}, 1) };
}

// Beyond the learner's curve the law continues by its expression, without bands.
function fartherTraces(one, name, line) {
  const end = line.x.at(-1), [, last] = sizeRange(name);
  const law = lawOf(one, name);
  if (!law || end >= last) return [];
  const x = spread(end, last, 24, []);
  return [{ type: "scatter", mode: "lines", x, y: askedAlong(law, x, name, {}, 1).mean, line: { color: colour("law"), width: 1.2, dash: "dash" }, hovertemplate: "law, far beyond: %{y:.3~s} at %{x:.4~s}<extra></extra>" }];
}

function powerTraces(one, name) {
  const power = one.powers[name];
  if (!power || power.exponent == null) return [];
  const x = spread(...sizeRange(name), 60, []).filter((value) => value > 0);
  return [{ type: "scatter", mode: "lines", name: "power law", showlegend: true, legendrank: 2, x, y: x.map((value) => power.coefficient * value ** power.exponent), line: { color: colour("warn"), width: 2, dash: "dot" },
    hovertemplate: `power law: %{y:.3~s} at %{x:.4~s}<extra></extra>` }];
}

// Laws of the other coloured clusters as thin lines, which show where one overtakes another (Figures 9 and 12).
function neighbourTraces(one, name) {
  const [low, high] = sizeRange(name);
  const grid = spread(low, high, 60, []);
  return trend.clusters.filter((other) => other.colour != null && other !== one && costAt(other, name, high) != null).map((other) => ({
    type: "scatter", mode: "lines", name: `cluster ${other.rank}`, legendgroup: "others", x: grid, y: grid.map((x) => costAt(other, name, x) || null), opacity: 0.75,
    line: { color: ownColour(other), width: 1.2, dash: "dashdot" }, hovertemplate: `${other.rank} ${shortened(other.text.name)}: %{y:.3~s}<extra></extra>`,
  }));
}

// The chosen size on the law, with the interval of a new run as far as the learner's bands reach.
function markTrace(one, name) {
  const size = trendSize(name), cost = costAt(one, name, size);
  const ends = one.joint ? null : bandsAt(one.plot.curves[name], size); // the bands are those of the law in this feature alone
  const error = ends && cost != null ? { error_y: { type: "data", symmetric: false, array: [Math.max(0, ends.new_high - cost)], arrayminus: [Math.max(0, cost - ends.new_low)], color: colour("accent") } } : {};
  const told = ends && !isKnown(cost, ends.mean_low, ends.mean_high) ? "<br>its count there is unknown" : ends ? `<br>${CONFIDENCE.words} of the mean ${span(ends.mean_low, ends.mean_high, "")}, of a new run ${span(ends.new_low, ends.new_high, "")}` : "";
  return { type: "scatter", mode: "markers", name: "asked", showlegend: false, x: cost == null ? [] : [size], y: cost == null ? [] : [cost], ...error,
    marker: { size: 11, symbol: "diamond-open", color: colour("accent"), line: { width: 2 } }, hovertemplate: `asked: %{y:.3~s} at %{x:.4~s}${told}<extra></extra>` };
}

// The slider moves only the mark.
function markFit() {
  const chart = document.getElementById("fit-chart");
  if (!chart?.data || looking.rank == null) return;
  const range = chart.layout.xaxis.range, size = trendSize(trendFeature());
  const end = looking.axes === "log" ? 10 ** range[1] : range[1];
  if (size > end && looking.axes === "log") return drawFit();
  chart.data[chart.data.length - 1] = markTrace(clusterOf(looking.rank), trendFeature());
  paint(chart);
}

// log cost − log law against the feature: a hump is a term or a logarithm that the law lacks (§6.2.1).
function drawRest(one, name, runs, log) {
  const power = one.powers[name];
  const ofPower = looking.residuals === "power";
  const law = ({ x, i }) => (ofPower ? (power ? power.coefficient * x ** power.exponent : NaN) : bestAt(one, i));
  const points = runs.map((run) => ({ ...run, y: Math.log(run.y / law(run)) })).filter(({ y }) => Number.isFinite(y));
  const upright = { ...axis(`log count − log ${ofPower ? "power law" : "law"}`, false), exponentformat: "none" };
  const most = Math.max(1e-3, ...points.map(({ y }) => Math.abs(y))) * 1.15;
  upright.range = [-most, most];
  const across = { ...axis(shortened(name), log), range: [...document.getElementById("fit-chart").layout.xaxis.range] };
  drawChart("rest-chart", [{ ...pointTrace(one, points), showlegend: false, hovertemplate: "%{y:.3~g} at %{x:.4~s}<br>run %{customdata}<extra></extra>" }],
    layout(200, across, upright, scaleLines(0)));
}

async function showCluster(rank) {
  const one = clusterOf(rank);
  const packed = trend.plots[rank];
  one.plot ??= packed ? await inflate(packed) : null;
  if (looking.rank !== rank) return; // another one was selected while this one was inflated
  const drawn = one.plot && trendFeature() != null;
  document.getElementById("cluster").replaceChildren(clusterTitle(one), element("div", { class: "columns" },
    element("div", { class: "charts" }, drawn ? fitArea() : element("p", { class: "quiet" }, one.plot ? "No feature to draw it against."
      : `The page holds the points of the ${Object.keys(trend.plots).length} largest clusters, and only the laws of this one.`)),
    element("div", { class: "words" }, clusterWords(one))));
  if (drawn) drawFit();
}

function clusterTitle(one) {
  return element("header", { class: "detail-title" },
    element("h2", null, clusterSwatch(one), " ", named("span", null, one.text.name)),
    element("p", { class: "quiet" }, `${one.text.share} of all counts · at most ${one.text.max_cost} in a run · ${counted(one.size, trend.noun.replace(/s$/, ""))} in it`));
}

function clusterWords(one) {
  const name = trendFeature();
  const law = one.laws[name], power = one.powers[name];
  const others = Object.entries(one.laws).filter(([other, its]) => other !== name && !isFlat(its));
  return [
    element("section", { class: "law" }, element("h3", { class: "label" }, "where it is"), element("ul", { class: "places" },
      one.places.map((place) => named("li", null, place)), one.more_places ? element("li", { class: "quiet" }, `and ${counted(one.more_places, "more place")}`) : "")),
    one.overtakes.length ? element("section", { class: "law" }, element("h3", { class: "label" }, "overtakes"), element("ul", { class: "places" }, one.overtakes.map(overtakeItem))) : "",
    one.joint ? element("section", { class: "law" }, element("h3", { class: "label" }, "law in several features"), named("p", { class: "readable" }, one.law.text.law),
      element("div", { class: "expression" }, named("code", null, one.law.expression), copyButton(one.law.expression))) : "",
    law ? lawSection(one.joint ? `in ${shortName(name)} alone: ` : "", { ...law, alternatives: [] }, law.text, named("span", { class: "readable" }, isFlat(law) ? `no law in ${name}` : law.text.law)) : "",
    power ? element("section", { class: "law" }, element("h3", { class: "label" }, "power law of the paper"), named("p", { class: "readable" }, power.text.law),
      element("p", { class: "quiet" }, [`${CONFIDENCE.words} interval of the exponent in brackets`, `R² ${power.text.r2} over ${counted(power.n, "run")}`, power.text.zeros].filter(Boolean).join(" · ")),
      one.believe.map((sentence) => named("p", { class: "reason" }, sentence))) : "",
    others.length ? element("section", { class: "law" }, element("h3", { class: "label" }, "in other features"), element("ul", { class: "places" }, others.map(([other, its]) => named("li", null, `${its.text.law}${powerBeside(one.powers[other])}`)))) : "",
    membersSection(one),
  ];
}

const powerBeside = (power) => (power ? `; power law ${power.text.law}` : "");

function overtakeItem(other) {
  const go = () => { if (other.feature === trendFeature()) setSize(other.feature, Number(other.at.toPrecision(6))); };
  return element("li", null, clusterLink(clusterOf(other.rank)), " at ",
    element("button", { type: "button", class: "link at-link", title: "Ask at this size", onclick: go }, other.text.replace(/^.*? at /, "")));
}

// Locations without source in the page, by name with their counts in the costliest run.
function membersSection(one) {
  if (!one.plot?.members.length || one.spots.length) return "";
  const rows = one.plot.members.slice(0, 100).map(([name, count]) => element("tr", null, named("td", null, name), element("td", { class: "number" }, countText(count))));
  const more = one.plot.members.length + one.plot.more - rows.length;
  return element("section", { class: "law" }, element("h3", { class: "label" }, `its ${trend.noun}, with their counts in run ${trend.costliest.run}`),
    element("div", { class: "runs-scroll" }, element("table", { class: "plain" }, element("tbody", null, rows))), more > 0 ? element("p", { class: "quiet" }, `and ${more.toLocaleString("en")} more`) : "");
}

function fitArea() {
  const redraw = (field) => (value) => { looking[field] = value; drawFit(); remember(); };
  return [
    element("div", { class: "chart-bar" },
      choiceOf("Axes", [["log", "log–log"], ["linear", "linear"]], looking.axes, redraw("axes"), "trend-axes"),
      trend.clusters.length > 1 ? tick("trend-others", looking.others, "other top clusters", redraw("others")) : "",
      element("span", { id: "fit-note", class: "quiet small" })),
    element("div", { id: "fit-chart", class: "chart", role: "group", "aria-label": "Cost of the cluster in every run, its law with bands, and the power law" }),
    element("div", { class: "chart-bar" }, element("h3", { class: "label" }, "residuals of"),
      choiceOf("Residuals of", [["law", "the law"], ["power", "the power law"]], looking.residuals, redraw("residuals"), "trend-residuals")),
    element("div", { id: "rest-chart", class: "chart", role: "group", "aria-label": "Residuals" }),
  ];
}
