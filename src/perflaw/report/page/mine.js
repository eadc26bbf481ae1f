// The call-path view: the functions that were mined, which one is selected, merged models, keys and address.

const mining = { place: 0, filter: "" };
const mineScreens = new Map();
let mineAsking = 0;

const MINE_HELP = "Each row is a function: borders separate its quick calls from its slow ones, and call paths on which it behaves alike form a group. "
  + "Select one (click, or ↑ ↓) to see which calls of its call paths decide how it behaves.";

function startMine() {
  document.addEventListener("keydown", onMineKey);
  const first = mine.rows.findIndex((row) => row.sizes.groups > 1);
  mining.place = Math.max(0, first >= 0 ? first : mine.rows.findIndex((row) => row.sizes.borders));
}

function drawMine() {
  if (!isShown("specifications")) return;
  const parts = mine.rows.length ? [mineList(), element("section", { id: "spec", "aria-label": "Selected function" })] : [element("p", { class: "reason" }, "No function was called often enough.")];
  document.getElementById("mine").replaceChildren(element("h2", { class: "unseen" }, "Call paths"), ...(mine.merges ? [mergesCard(mine.merges)] : []), ...parts, ...(mine.journal ? [journalCard(mine.journal)] : []));
  if (!mine.rows.length) return;
  filterSpecs();
  showSpec();
}

function chooseSpec(place, focus = false) {
  mining.place = place;
  showSpec();
  if (focus) mineRows[place].element.focus({ preventScroll: true });
  rememberNow();
}

async function showSpec() {
  for (const entry of mineRows) {
    const chosen = entry.place === mining.place;
    entry.element.setAttribute("aria-selected", chosen);
    entry.element.tabIndex = chosen ? 0 : -1;
    if (chosen) entry.element.scrollIntoView({ block: "nearest" });
  }
  const turn = ++mineAsking, place = mining.place;
  if (!mineScreens.has(place)) mineScreens.set(place, await inflate(mine.screens[place]));
  if (turn !== mineAsking) return;
  document.getElementById("spec").replaceChildren(...mineScreen(mineScreens.get(place), mine.rows[place]));
  showTarget(document.querySelector(".calls-scroll"));
}

function onMineKey(event) {
  if (!isShown("specifications") || event.ctrlKey || event.altKey || event.metaKey || !mine.rows.length) return;
  if (event.key === "Escape" && event.target.id === "mine-text") { event.target.value = mining.filter = ""; filterSpecs(); return; }
  if (event.target.closest("input, select, textarea, summary")) return;
  if (event.key === "/") { event.preventDefault(); document.getElementById("mine-text").focus(); return; }
  const way = STEPS[event.key], rows = mineRows.filter((entry) => !entry.element.hidden);
  if (!way || !rows.length || (Math.abs(way) !== 1 && !event.target.closest("#specs"))) return;
  event.preventDefault();
  const here = rows.findIndex((entry) => entry.place === mining.place);
  chooseSpec(rows[Math.min(rows.length - 1, Math.max(0, here + way))].place, true);
}

// The choices of this view in the address.
function mineAddress() {
  const parts = [];
  if (mine.rows.length) parts.push(["function", linkable(mine.rows[mining.place].component)]);
  if (mining.filter) parts.push(["filter", linkable(mining.filter)]);
  return parts;
}

function followMine(parts) {
  mining.filter = (parts.get("filter") ?? "").toLowerCase();
  const place = mine.rows.findIndex((row) => linkable(row.component) === parts.get("function"));
  if (place >= 0) mining.place = place;
}

let mineRows = [];

function mineList() {
  const box = element("div", { id: "specs", role: "listbox", "aria-label": "Specifications" });
  mineRows = mine.rows.map((row, place) => ({ row, place, element: mineRow(row, place) }));
  box.append(...mineRows.map((entry) => entry.element));
  const input = element("input", { id: "mine-text", type: "search", placeholder: "function  ( / )", "aria-label": "Show functions whose name contains", value: mining.filter });
  input.addEventListener("input", () => { mining.filter = input.value.toLowerCase(); filterSpecs(); remember(); });
  return element("div", { class: "pattern-list" }, element("div", { class: "pattern-bar" }, input, element("span", { id: "specs-shown" })),
    element("div", { class: "pattern-heads spec-heads small quiet" }, ["share", "function", "calls", "borders", "groups", "edges", "stable"].map((text) => element("span", null, text))), box);
}

function mineRow(row, place) {
  return element("div", { class: "pattern spec", role: "option", "aria-selected": "false", "data-spec": String(place), tabindex: -1, title: row.component, onclick: () => chooseSpec(place, true) },
    element("span", { class: "number" }, row.text.share), named("span", { class: "clip name" }, row.component), ...[row.text.calls, row.sizes.borders, row.sizes.groups, row.sizes.edges].map((value) => element("span", { class: "number" }, String(value))),
    element("span", { class: "number" }, row.stable ? "yes" : "no"));
}

function filterSpecs() {
  let shown = 0;
  for (const { row, element: line } of mineRows) {
    line.hidden = !row.component.toLowerCase().includes(mining.filter);
    shown += !line.hidden;
  }
  document.getElementById("specs-shown").replaceChildren(shown === mineRows.length ? counted(shown, "function") : `${shown} of ${mineRows.length}`);
}

const BOX = { width: 460, height: 230, left: 46, right: 10, top: 10, bottom: 40, half: 15 };

function mergesCard(merges) {
  const worst = merges.worst.map((one) => element("li", null, `${one.step}: `, foreign(one.component), ` ${one.points} of its calls, ${one.paths} of its call paths`));
  return card("Consistency of models that were merged one after the other",
    element("div", { class: "boxes" }, merges.series.map((series) => element("figure", null, boxPlot(series, merges.steps), element("figcaption", { class: "small quiet" }, `share of ${series.name} that both models group alike`)))),
    element("p", { class: "legend small quiet" }, "box: quartiles over functions, whiskers after Tukey, dots: outliers; dashed: the median that random groups of the same sizes reach"),
    merges.plain ? element("p", { class: "small quiet" }, `${counted(merges.plain, "comparison")} left out: with one group a function, models cannot disagree`) : "",
    element("details", null, element("summary", null, "the least consistent function of each step"), element("ul", { class: "small" }, worst)),
    leftOut("not compared, missing on one side", merges.missing), leftOut("not compared, without borders or callers on one side", merges.unsettled));
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
  return shape("g", { class: "box" }, shape("title", null, `${counted(n, "function")}, median ${text}`),
    shape("path", { class: "whisker-line", d: `M${x},${y(whiskers[0])} V${y(low)} M${x},${y(high)} V${y(whiskers[1])} M${x - half / 2},${y(whiskers[0])} h${half} M${x - half / 2},${y(whiskers[1])} h${half}` }),
    shape("rect", { x: x - half, y: y(high), width: 2 * half, height: Math.max(1, y(low) - y(high)) }),
    shape("path", { class: "median", d: `M${x - half},${y(middle)} h${2 * half}` }), shape("path", { class: "chance", d: `M${x - half - 6},${y(chance)} h${2 * half + 12}` }),
    outliers.map((one) => shape("circle", { cx: x, cy: y(one), r: 2.6 })));
}
