// Models of several runs merged one after the other: the paper's Figure 5, with the level that chance gives.

const BOX = { width: 460, height: 230, left: 46, right: 10, top: 10, bottom: 40, half: 15 };

function mergesCard(merges) {
  const worst = merges.worst.map((one) => element("li", null, `${one.step}: `, foreign(one.function), ` ${one.points} of its calls, ${one.paths} of its call paths`));
  return card("Consistent between runs that were merged one after the other",
    element("div", { class: "boxes" }, merges.series.map((series) => element("figure", null, boxPlot(series, merges.steps), element("figcaption", { class: "small quiet" }, `share of ${series.name} that both models group alike`)))),
    element("p", { class: "legend small quiet" }, "box: quartiles over functions, whiskers after Tukey, dots: outliers; dashed: the median that random groups of the same sizes reach"),
    merges.plain ? element("p", { class: "small quiet" }, `${plural(merges.plain, "comparison")} of functions with one group left out: there is nothing to disagree about`) : "",
    element("details", null, element("summary", null, "the least of each step"), element("ul", { class: "small" }, worst)),
    leftOut("not compared, as one side lacks them", merges.missing), leftOut("not compared, as one side found no borders in them", merges.unsettled));
}

function leftOut(why, names) {
  return names.length ? named("p", { class: "small quiet" }, `${why}: ${names.slice(0, 12).join(", ")}${names.length > 12 ? " …" : ""}`) : "";
}

function boxPlot({ name, boxes }, steps) {
  const bottom = BOX.height - BOX.bottom, inner = BOX.width - BOX.left - BOX.right;
  const y = (share) => BOX.top + (1 - share) * (bottom - BOX.top), x = (i) => BOX.left + ((i + 0.5) / boxes.length) * inner;
  const half = Math.min(BOX.half * 2, inner / boxes.length / 3);
  const marks = [0, 0.25, 0.5, 0.75, 1].map((at) => [shape("path", { class: "rule", d: `M${BOX.left},${y(at)} H${BOX.width - BOX.right}` }), shape("text", { class: "tick end", x: BOX.left - 6, y: y(at) + 4 }, `${at * 100} %`)]);
  const drawn = boxes.map((box, i) => [shape("text", { class: "tick", x: x(i), y: bottom + 16 }, `+ ${ending(steps[i], 14)}`), box ? oneBox(box, x(i), y, half) : null]);
  return shape("svg", { class: "box-plot", viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": `Share of consistent ${name} by step` }, marks, drawn);
}

function oneBox({ n, quartiles: [low, middle, high], whiskers, outliers, chance, text }, x, y, half) {
  return shape("g", { class: "box" }, shape("title", null, `${n} functions, median ${text}`),
    shape("path", { class: "whisker-line", d: `M${x},${y(whiskers[0])} V${y(low)} M${x},${y(high)} V${y(whiskers[1])} M${x - half / 2},${y(whiskers[0])} h${half} M${x - half / 2},${y(whiskers[1])} h${half}` }),
    shape("rect", { x: x - half, y: y(high), width: 2 * half, height: Math.max(1, y(low) - y(high)) }),
    shape("path", { class: "median", d: `M${x - half},${y(middle)} h${2 * half}` }), shape("path", { class: "chance", d: `M${x - half - 6},${y(chance)} h${2 * half + 12}` }),
    outliers.map((one) => shape("circle", { cx: x, cy: y(one), r: 2.6 })));
}
