// P(cost > d): as recorded with its interval, and what Chebyshev's inequality promises of any distribution.

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

// The record ends where no call took longer.
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
