// What dominates at a size: a slider, the answer in a sentence, and how the shares move as the size grows.

const SHARE_GRID = 64;

function sizePanel() {
  const name = trendFeature();
  const heads = name == null
    ? [element("p", { class: "reason" }, "No feature varies over the runs: costs cannot be predicted.")]
    : [sizeBar(name), othersBar(name), element("p", { id: "dominates", role: "status", "aria-live": "polite" }), element("ol", { id: "leaders" })];
  return element("section", { id: "sizes", "aria-label": "What dominates at a size" },
    element("div", { class: "size-words" }, heads),
    element("div", { id: "share-chart", class: "chart", role: "img", "aria-label": "Share of each cluster in the cost as the size grows" }));
}

function sizeBar(name) {
  const [low, high] = sizeRange(name);
  const scale = notched(low, high);
  const field = element("input", { type: "number", id: "size", step: "any", min: 0, value: trendSize(name), "aria-label": `${name}, size to ask at`,
    oninput: () => { if (Number(field.value) > 0) setSize(name, Number(field.value), field); } });
  const range = element("input", { type: "range", id: "size-slider", min: 0, max: NOTCHES, value: scale.notch(trendSize(name)), "aria-label": `${name}, logarithmic`,
    oninput: () => setSize(name, scale.value(Number(range.value)), range) });
  const times = [1, 10, 100].map((factor) => element("button", { type: "button", "data-times": factor,
    title: `${factor === 1 ? "the largest seen" : `${factor} times the largest seen`}`, onclick: () => setSize(name, featureOf(name).high * factor) }, `${factor}x`));
  return element("form", { class: "size-bar", onsubmit: (event) => event.preventDefault() },
    element("label", null, "what dominates at ", trend.features.length > 1 ? featureSelect(name) : named("b", null, name), " = ", field), range,
    element("span", { class: "choice" }, times));
}

// The other features, held where the person wants them.
function othersBar(name) {
  const others = trend.features.filter((one) => one.name !== name);
  if (!others.length) return "";
  return element("form", { class: "size-bar", id: "others", onsubmit: (event) => event.preventDefault() }, element("span", { class: "quiet small" }, "with"), others.slice(0, 8).map((other) => {
    const field = element("input", { type: "number", step: "any", value: trendSize(other.name), "data-size": other.name, "aria-label": `${other.name}, held at`,
      oninput: () => { if (field.value !== "") holdSize(other.name, Number(field.value)); } });
    return element("label", null, named("span", null, other.name), " = ", field);
  }));
}

function holdSize(name, size) {
  looking.sizes[name] = size;
  cancelAnimationFrame(setSize.waiting);
  setSize.waiting = requestAnimationFrame(() => { tellSizes(); drawShares(); drawFit(); });
  remember();
}

function featureSelect(chosen) {
  const choose = (event) => { looking.feature = event.target.value; buildTrend(); rememberNow(); };
  return element("select", { id: "trend-feature", onchange: choose, "aria-label": "Feature" },
    trend.features.map(({ name }) => element("option", { value: name, selected: name === chosen }, name)));
}

// `from` is the field being moved: it must not be written to while it is.
function setSize(name, size, from = null) {
  looking.sizes[name] = size;
  const field = document.getElementById("size"), range = document.getElementById("size-slider");
  if (from !== field) field.value = Number(size.toPrecision(6));
  if (from !== range) range.value = notched(...sizeRange(name)).notch(size);
  cancelAnimationFrame(setSize.waiting);
  setSize.waiting = requestAnimationFrame(() => { tellSizes(); moveMark(name, size); markFit(); });
  remember();
}

// The sentence, the leaders and the list's columns for the chosen size.
function tellSizes() {
  const found = askClusters();
  tellList(found);
  const sentence = document.getElementById("dominates");
  if (!sentence) return;
  const first = found.asked[0];
  if (!first) return sentence.replaceChildren("No cluster has a law in it.");
  sentence.replaceChildren("At ", named("b", null, `${found.name} = ${short(found.size)}`), ` (${timesSeen(found.name, found.size)}), `,
    clusterLink(first), ` is `, element("b", null, shareText(first.part)), ` of the predicted cost, now ${first.shareText}: `, named("span", null, first.places[0] ?? first.name),
    first.places.length > 1 ? ` and ${plural(first.places.length + first.morePlaces - 1, "more place")}` : "", ".");
  document.getElementById("leaders").replaceChildren(...found.asked.slice(0, 6).filter((one) => one.part >= 0.0005).map((one) => leader(one)));
}

const leader = (one) => element("li", null, clusterLink(one, one.name), element("span", { class: "quiet" }, ` ${shareText(one.part)}, ${quantity(one.cost, "")}`),
  one.then < one.rank ? element("span", { class: "rising" }, ` ▲ from ${one.rank}`) : "");

function clusterLink(one, words = `cluster ${one.rank}`) {
  return element("button", { type: "button", class: "link cluster-link", title: one.name, onclick: () => selectCluster(one.rank) }, clusterSwatch(one), " ", named("span", null, words));
}

// Shares over all sizes of the slider: the coloured clusters one by one, all others as one.
function drawShares() {
  const name = trendFeature();
  const box = document.getElementById("share-chart");
  if (name == null || !box) return box?.remove();
  const [low, high] = sizeRange(name);
  const grid = spread(low, high, SHARE_GRID, []);
  const apart = trend.clusters.filter((one) => one.colour != null).sort((a, b) => a.colour - b.colour);
  const others = trend.clusters.filter((one) => one.colour == null);
  const costs = (one) => grid.map((x) => costAt(one, name, x) ?? 0);
  const rest = others.reduce((sum, one) => costs(one).map((value, i) => value + sum[i]), grid.map(() => 0));
  const layers = [...apart.map((one) => ({ words: `${one.rank} ${one.name}`, costs: costs(one), fill: ownColour(one), rank: one.rank })),
    ...(others.length ? [{ words: `${plural(others.length, "other cluster")}`, costs: rest, fill: colour("other") }] : [])];
  const whole = grid.map((_, i) => layers.reduce((sum, layer) => sum + layer.costs[i], 0) || 1);
  const traces = layers.map((layer) => ({
    type: "scatter", mode: "lines", stackgroup: "one", x: grid, y: layer.costs.map((value, i) => (100 * value) / whole[i]), name: shortened(layer.words), customdata: grid.map(() => layer.rank ?? null),
    line: { width: 0.5, color: colour("page") }, fillcolor: layer.fill, hovertemplate: `${shortened(layer.words)}: %{y:.1f} %<extra></extra>`,
  }));
  const vertical = { ...axis("% of the cost", false), range: [0, 100], ticksuffix: "" };
  Plotly.react(box, traces, layout(210, axis(shortened(name), high > 20 * low), vertical, { hovermode: "x unified", shapes: shareShapes(name, trendSize(name)), margin: { l: 48, r: 12, t: 6, b: 40 } }), CONFIG);
  if (!box.dataset.asks) box.on("plotly_click", ({ points }) => setSize(trendFeature(), Number(points[0].x.toPrecision(4))));
  box.dataset.asks = "1";
}

// The data end where the dotted line stands; the solid one is the chosen size.
function shareShapes(name, size) {
  const upright = (x, width, dash) => ({ type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: { width, dash, color: colour("text") } });
  return [upright(featureOf(name).high, 1, "dot"), upright(size, 2.5, "solid")];
}

function moveMark(name, size) {
  if (document.getElementById("share-chart")?.data) Plotly.relayout("share-chart", { shapes: shareShapes(name, size) });
}
