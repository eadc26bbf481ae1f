// Durations as bars on a logarithmic axis, stacked by behaviour, with the borders between clusters.

const BARS = { width: 640, height: 240, left: 26, right: 26, top: 26, bottom: 34 };

function durationBars(data) {
  const n = data.groups[0].length, inner = BARS.width - BARS.left - BARS.right, bottom = BARS.height - BARS.bottom;
  const x = (at) => BARS.left + ((at - data.low) / (data.width * n)) * inner;
  const sums = Array.from({ length: n }, (_, i) => data.groups.reduce((sum, bars) => sum + bars[i], 0));
  const most = Math.max(1, ...sums), y = (calls) => (calls / most) * (bottom - BARS.top);
  const svg = shape("svg", { class: "durations", viewBox: `0 0 ${BARS.width} ${BARS.height}`, role: "img", "aria-label": "Durations, with the borders between quick and slow calls" },
    data.ticks.map((tick) => [shape("path", { class: "rule", d: `M${x(tick.at)},${BARS.top} V${bottom}` }), shape("text", { class: "tick", x: x(tick.at), y: bottom + 15 }, tick.text)]),
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
    return shape("rect", { class: `duration g${group % BEHAVIOURS}`, x: left, y: top, width, height: y(bars[i]) }, shape("title", null, `behaviour ${group + 1}: ${bars[i].toLocaleString("en")} calls`));
  }).filter(Boolean);
}
