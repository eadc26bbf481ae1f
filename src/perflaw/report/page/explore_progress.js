// Progress: every trial in its order, and the best so far.

const COURSE = { width: 640, height: 230, left: 96, right: 14, top: 12, bottom: 34 };

function progressCard() {
  const metric = metricOf(chosen.metric), seen = study.trials.filter((one) => Number.isFinite(one.metrics[metric?.name]));
  if (!seen.length) return "";
  const values = seen.map((one) => one.metrics[metric.name]), log = Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) > 20, f = scaled(log);
  const low = f(Math.min(...values)), high = f(Math.max(...values)), pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  const last = study.trials.at(-1).number, bottom = COURSE.height - COURSE.bottom;
  const x = (number) => COURSE.left + ((number - 0.5) / last) * (COURSE.width - COURSE.left - COURSE.right);
  const y = (value) => bottom - ((f(value) - low + pad) / (high - low + 2 * pad)) * (bottom - COURSE.top);
  const svg = shape("svg", { class: "course", viewBox: `0 0 ${COURSE.width} ${COURSE.height}`, role: "img", "aria-label": `${metric.name} of each trial, and the best so far` },
    marksOf(log, Math.min(...values), Math.max(...values)).map((at) => [shape("path", { class: "rule", d: `M${COURSE.left},${y(at)} H${COURSE.width - COURSE.right}` }), shape("text", { class: "tick end", x: COURSE.left - 6, y: y(at) + 4 }, told(metric, at))]),
    ticks(0, last, 8).filter((at) => at >= 1 && Number.isInteger(at)).map((at) => shape("text", { class: "tick", x: x(at), y: bottom + 15 }, String(at))),
    shape("text", { class: "tick axis-name", x: (COURSE.left + COURSE.width) / 2, y: COURSE.height - 4 }, "trial"), metric.goal ? shape("path", { class: "best-line", d: bestLine(metric, seen, x, y, last) }) : "",
    study.trials.filter((one) => one.state === "invalid").map((one) => shape("path", { class: "mark invalid", d: `M${x(one.number) - 3},${bottom - 3} l6,6 m0,-6 l-6,6`, onclick: () => point(one.number) }, shape("title", null, `trial ${one.number}, invalid: ${one.said}`))),
    seen.map((one) => markOf(metric, one, x, y)));
  return card(["Progress in ", named("span", null, metric.name)], "progress", svg, element("p", { class: "small quiet legend" }, "line: best so far · ● trial · ○ ended early · △ disturbed by others · × invalid"));
}

const marksOf = (log, low, high) => (log ? ticks(Math.log10(low), Math.log10(high), 4).map((at) => 10 ** at) : ticks(low, high, 4));

function markOf(metric, one, x, y) {
  const at = { cx: x(one.number), cy: y(one.metrics[metric.name]) };
  const title = shape("title", null, `trial ${one.number}: ${one.texts[metric.name]}\n${Object.entries(one.settings).map(([name, text]) => `${name} = ${text}`).join(", ")}${one.said ? `\n${one.said}` : ""}`);
  const shared = { onclick: () => point(one.number), "data-trial": one.number };
  if (one.state === "disturbed") return shape("path", { class: "mark disturbed", d: `M${at.cx},${at.cy - 5} l5,9 h-10 z`, ...shared }, title);
  return shape("circle", { class: `mark ${one.state === "ended early" ? "early" : "done"}`, ...at, r: 3.6, ...shared }, title);
}

function bestLine(metric, seen, x, y, last) {
  let best = null, path = "";
  for (const one of seen.filter(({ counts, state }) => counts && state !== "ended early")) {
    const value = one.metrics[metric.name];
    if (best != null && (metric.goal === "min" ? value >= best : value <= best)) continue;
    path += best == null ? `M${x(one.number)},${y(value)}` : ` H${x(one.number)} V${y(value)}`;
    best = value;
  }
  return best == null ? "" : `${path} H${x(last)}`;
}
