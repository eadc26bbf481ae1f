// Several goals: all trials in two metrics, and the configurations than which none is better in both.

const FRONT = { width: 560, height: 320, left: 84, right: 16, top: 12, bottom: 46 };

function frontCard() {
  const goals = study.metrics.filter(({ goal }) => goal);
  if (!study.front.length || goals.length < 2) return "";
  const [a, b] = chosen.front.map(metricOf).filter(Boolean).length === 2 ? chosen.front.map(metricOf) : goals;
  const choice = goals.length > 2 ? element("p", { class: "map-bar" }, [a, b].map((one, i) => element("select", { "aria-label": i ? "upwards" : "across", onchange: (event) => { chosen.front = i ? [a.name, event.target.value] : [event.target.value, b.name]; keep(); draw(); } },
    goals.map(({ name }) => element("option", { value: name, selected: name === one.name }, name))))) : "";
  const rows = study.front.map((one) => [named("span", null, one.settings), ...goals.map(({ name }) => one.texts[name]), one.probability]);
  const table = (some) => plainTable(["configuration", ...goals.map(({ name }) => name), "sure"], some, goals.map((_, i) => i + 1));
  const more = rows.length > 8 ? element("details", null, element("summary", null, `${rows.length - 8} more`), table(rows.slice(8))) : "";
  return card("No other is better in every metric", "front", choice, frontChart(a, b), table(rows.slice(0, 8)), more);
}

function frontChart(a, b) {
  const seen = study.trials.filter((one) => one.counts && Number.isFinite(one.metrics[a.name]) && Number.isFinite(one.metrics[b.name]));
  const x = axisOf(a, seen.map((one) => one.metrics[a.name]), FRONT.left, FRONT.width - FRONT.right), y = axisOf(b, seen.map((one) => one.metrics[b.name]), FRONT.height - FRONT.bottom, FRONT.top);
  const bottom = FRONT.height - FRONT.bottom;
  return shape("svg", { class: "course front", viewBox: `0 0 ${FRONT.width} ${FRONT.height}`, role: "img", "aria-label": `${a.name} and ${b.name} of all trials` },
    y.marks.map((at) => [shape("path", { class: "rule", d: `M${FRONT.left},${y.at(at)} H${FRONT.width - FRONT.right}` }), shape("text", { class: "tick end", x: FRONT.left - 6, y: y.at(at) + 4 }, told(b, at))]),
    x.marks.map((at) => shape("text", { class: "tick", x: x.at(at), y: bottom + 15 }, told(a, at))),
    shape("text", { class: "tick axis-name", x: (FRONT.left + FRONT.width) / 2, y: FRONT.height - 10 }, `${a.name} (${a.goal === "max" ? "more" : "less"} is better)`),
    shape("text", { class: "tick axis-name", x: 12, y: bottom / 2, transform: `rotate(-90 12 ${bottom / 2})` }, `${b.name} (${b.goal === "max" ? "more" : "less"} is better)`),
    seen.map((one) => shape("circle", { class: "mark behind", cx: x.at(one.metrics[a.name]), cy: y.at(one.metrics[b.name]), r: 3.2, onclick: () => point(one.number) }, shape("title", null, `trial ${one.number}: ${one.texts[a.name]}, ${one.texts[b.name]}`))),
    study.front.filter((one) => one.metrics[a.name] && one.metrics[b.name]).map((one) => frontMark(one, a, b, x, y)));
}

function frontMark(one, a, b, x, y) {
  const [middle, low, high] = one.metrics[a.name], [up, from, to] = one.metrics[b.name];
  return shape("g", { class: "front-point" }, shape("title", null, `${one.settings}\n${one.texts[a.name]}, ${one.texts[b.name]}\n${one.probability} sure that none is better in every metric`),
    shape("path", { class: "error", d: `M${x.at(low)},${y.at(up)} H${x.at(high)} M${x.at(middle)},${y.at(from)} V${y.at(to)}` }), shape("circle", { cx: x.at(middle), cy: y.at(up), r: 5 }));
}

function axisOf(metric, values, start, end) {
  const low = Math.min(...values), high = Math.max(...values), log = low > 0 && high / low > 20, f = scaled(log), pad = (f(high) - f(low)) * 0.05 || 1;
  return { at: (value) => start + ((f(value) - f(low) + pad) / (f(high) - f(low) + 2 * pad)) * (end - start), marks: marksOf(log, low, high) };
}
