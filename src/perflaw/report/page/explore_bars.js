// What matters: shares of a metric's variance over the space, by knob and by pair, with their intervals.

function importanceCard() {
  const metric = metricOf(chosen.metric), one = metric?.importance;
  if (!one) return "";
  const title = ["What matters for ", named("span", null, metric.name)];
  if (one.reason) return card(title, "importance", named("p", { class: "reason" }, one.reason));
  const sure = one.shares.filter((share) => share.sure), rest = one.shares.filter((share) => !share.sure);
  const most = Math.max(...one.shares.map(({ high }) => high), 0.01);
  const words = [`share of its ${one.kind} over the whole space, with ${CONFIDENCE.words} intervals`, one.exact ? "every combination of levels was tried" : "interpolated between trials", one.noise].filter(Boolean).join(" · ");
  const others = rest.length ? element("p", { class: "small quiet" }, "Not established: ", rest.slice(0, 8).map(({ knobs }) => knobs).join(", "), rest.length > 8 ? ", …" : "",
    ` (each at most ${Math.max(0.1, ...rest.map(({ high }) => high * 100)).toFixed(1)} %)`) : "";
  return card(title, "importance", element("p", { class: "small quiet" }, words), element("div", { class: "shares", role: "list" }, sure.map((share) => shareRow(share, most))), others);
}

function shareRow(share, most) {
  const bar = element("span", { class: "share-bar", "aria-hidden": "true" }), fill = element("span", { class: "share-fill" }), whisker = element("span", { class: "share-whisker" });
  fill.style.width = asPercent(share.share / most);
  whisker.style.left = asPercent(share.low / most);
  whisker.style.width = asPercent((share.high - share.low) / most);
  bar.append(fill, whisker);
  return element("div", { class: "share-row", role: "listitem" }, named("span", { class: "share-name" }, share.knobs), bar, element("span", { class: "number" }, share.text));
}

// Which metric the page speaks of, where there are several.
function metricChoice() {
  if (study.metrics.length < 2) return "";
  return element("p", { class: "metric-choice" }, choiceOf("Metric", study.metrics.map(({ name }) => [name, name]), chosen.metric, (name) => { chosen.metric = name; keep(); draw(); }, "metric"));
}
