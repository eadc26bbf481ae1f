// The selected cluster: its plots beside its words.

async function showCluster(rank) {
  const one = clusterOf(rank);
  const packed = trend.plots[rank];
  one.plot ??= packed ? await inflate(packed) : null;
  if (looking.rank !== rank) return; // another one was selected while this one was inflated
  const drawn = one.plot && trendFeature() != null;
  document.getElementById("cluster").replaceChildren(clusterTitle(one), element("div", { class: "columns" },
    element("div", { class: "charts" }, drawn ? fitArea() : element("p", { class: "quiet" }, one.plot ? "No feature to draw it against."
      : `The page has the points of the ${Object.keys(trend.plots).length} dearest clusters; of this one it has the laws.`)),
    element("div", { class: "words" }, clusterWords(one))));
  if (drawn) drawFit();
}

function clusterTitle(one) {
  return element("header", { class: "detail-title" },
    element("h2", null, clusterSwatch(one), " ", named("span", null, one.name)),
    element("p", { class: "quiet" }, `${one.shareText} of all counts · at most ${one.maxText} in a run · ${one.count.toLocaleString("en")} ${one.count === 1 ? trend.noun.replace(/s$/, "") : trend.noun} that vary with it`));
}

function clusterWords(one) {
  const name = trendFeature();
  const law = one.laws[name], power = one.powers[name];
  const others = Object.entries(one.laws).filter(([other, its]) => other !== name && !its.flat);
  return [
    element("section", { class: "law" }, element("h4", null, "where it is"), element("ul", { class: "places" },
      one.places.map((place) => named("li", null, place)), one.morePlaces ? element("li", { class: "quiet" }, `and ${plural(one.morePlaces, "more place")}`) : "")),
    one.overtakes.length ? element("section", { class: "law" }, element("h4", null, "overtakes"), element("ul", { class: "places" }, one.overtakes.map(overtakeItem))) : "",
    one.joint ? element("section", { class: "law" }, element("h4", null, "law in several features"), named("p", { class: "readable" }, one.law.text),
      element("div", { class: "expression" }, named("code", null, one.law.expression), copyButton(one.law.expression))) : "",
    law ? lawSection(one.joint ? `in ${shortName(name)} alone: ` : "", { ...law, alternatives: [], facts: law.facts.filter(([, value]) => value) }, named("span", { class: "readable" }, law.flat ? `no law in ${name}` : law.text)) : "",
    power ? element("section", { class: "law" }, element("h4", null, "power law of the paper"), named("p", { class: "readable" }, power.text),
      element("p", { class: "quiet" }, [`${CONFIDENCE.words} interval of the exponent in brackets`, `R² ${power.r2} over ${plural(power.n, "run")}`, power.zeros].filter(Boolean).join(" · "))) : "",
    others.length ? element("section", { class: "law" }, element("h4", null, "in other features"), element("ul", { class: "places" }, others.map(([other, its]) => named("li", null, `${its.text}${powerBeside(one.powers[other])}`)))) : "",
    membersSection(one),
  ];
}

const powerBeside = (power) => (power ? `; power law ${power.text}` : "");

function overtakeItem(other) {
  const go = () => { if (other.feature === trendFeature()) setSize(other.feature, Number(other.at.toPrecision(6))); };
  return element("li", null, clusterLink(clusterOf(other.rank)), " at ",
    element("button", { type: "button", class: "link at-link", title: "Ask at this size", onclick: go }, other.text.replace(/^.*? at /, "")));
}

// What has no source in the page is listed by name, with its count in the costliest run.
function membersSection(one) {
  if (!one.plot?.members.length || one.spots.length) return "";
  const rows = one.plot.members.slice(0, 100).map(([name, count]) => element("tr", null, named("td", null, name), element("td", { class: "number" }, counted(count))));
  const more = one.plot.members.length + one.plot.more - rows.length;
  return element("section", { class: "law" }, element("h4", null, `its ${trend.noun}, with their counts in run ${trend.costliest.run}`),
    element("div", { class: "runs-scroll" }, element("table", { class: "plain" }, element("tbody", null, rows))), more > 0 ? element("p", { class: "quiet" }, `and ${more.toLocaleString("en")} more`) : "");
}

function fitArea() {
  const redraw = (field) => (value) => { looking[field] = value; drawFit(); remember(); };
  return [
    element("div", { class: "chart-bar" },
      choiceOf("Axes", [["log", "log–log"], ["linear", "linear"]], looking.axes, redraw("axes"), "trend-axes"),
      trend.clusters.length > 1 ? tick("trend-others", looking.others, "other top clusters", redraw("others")) : "",
      element("span", { id: "fit-note", class: "quiet small" })),
    element("div", { id: "fit-chart", class: "chart", role: "img", "aria-label": "Cost of the cluster in every run, its law with bands, and the power law" }),
    element("div", { class: "chart-bar" }, element("h4", null, "residuals of"),
      choiceOf("Residuals of", [["law", "the law"], ["power", "the power law"]], looking.residuals, redraw("residuals"), "trend-residuals")),
    element("div", { id: "rest-chart", class: "chart", role: "img", "aria-label": "Residuals" }),
  ];
}
