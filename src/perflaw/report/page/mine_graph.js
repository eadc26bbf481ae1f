// The call paths of one function as the paper's Figure 1: calls in the colour of the group that all paths through them belong to.

// A graph that fits its place at this scale is drawn as small as it has to be; a larger one is scrolled.
const LEAST_SCALE = 0.75;
const CALL = { width: 176, height: 40, across: 26, down: 58, margin: 24, line: 15 };
const BEHAVIOURS = 8;

// Calls on paths of several groups are grey, calls of one group coloured, paths without a group dotted.
const behaviourClass = (groups) => (groups.length !== 1 ? "mixed" : groups[0] < 0 ? "unknown" : `g${groups[0] % BEHAVIOURS}`);

// A large graph is scrolled to the function itself, where all call paths end.
function showTarget(scroll) {
  const drawing = scroll.querySelector("svg"), width = drawing?.width.baseVal.value ?? 0;
  if (width > scroll.clientWidth && LEAST_SCALE * width <= scroll.clientWidth) Object.assign(drawing.style, { width: "100%", height: "auto" });
  const target = scroll.querySelector(".call.target"), here = scroll.getBoundingClientRect();
  if (!target) return;
  const box = target.getBoundingClientRect();
  scroll.scrollLeft += box.left + box.width / 2 - here.left - here.width / 2;
  scroll.scrollTop = scroll.scrollHeight;
}

function drawCalls({ nodes, lines }) {
  const left = Math.min(0, ...nodes.map((node) => node.place), ...lines.flatMap((line) => line.bends.map(([spot]) => spot)));
  const right = Math.max(0, ...nodes.map((node) => node.place), ...lines.flatMap((line) => line.bends.map(([spot]) => spot)));
  const layers = Math.max(0, ...nodes.map((node) => node.layer)) + 1;
  const tall = Array.from({ length: layers }, (_, layer) => Math.max(CALL.height, ...nodes.filter((node) => node.layer === layer).map(heightOf)));
  const tops = tall.map((_, layer) => CALL.margin + tall.slice(0, layer).reduce((sum, one) => sum + one + CALL.down, 0));
  const x = (spot) => CALL.margin + (spot - left) * (CALL.width + CALL.across) + CALL.width / 2;
  const width = 2 * CALL.margin + (right - left) * (CALL.width + CALL.across) + CALL.width;
  const height = tops.at(-1) + tall.at(-1) + CALL.margin;
  const where = { x, tops, tall };
  const ordered = [...lines].sort((a, b) => b.groups.length - a.groups.length);
  return shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Call paths, from the start of the program down to the function" },
    shape("defs", null, callMarker()), ordered.map((line) => callLine(line, nodes, where)), nodes.map((node) => callNode(node, where)),
    ordered.filter((line) => line.name).map((line) => callName(line, nodes, where)));
}

const callMarker = () => shape("marker", { id: "call-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto", markerUnits: "userSpaceOnUse" },
  shape("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }));

const MOST_NAMES = 4;
const shownNames = (node) => (node.names.length <= MOST_NAMES ? node.names : [node.names[0], node.names[1], `… ${node.names.length - 3} more`, node.names.at(-1)]);
const heightOf = (node) => shownNames(node).length * CALL.line + 14;

function callNode(node, { x, tops, tall }) {
  const height = heightOf(node), top = tops[node.layer] + (tall[node.layer] - height) / 2;
  const group = shape("g", { class: node.layer === tops.length - 1 ? "call target" : "call", transform: `translate(${x(node.place) - CALL.width / 2},${top})` },
    shape("title", null, node.names.join(" → ")), shape("rect", { width: CALL.width, height, rx: 4 }));
  shownNames(node).forEach((name, i) => group.append(shape("text", { x: CALL.width / 2, y: 18 + i * CALL.line }, fittingCall(name))));
  return group;
}

// The end of a name that fits.
function fittingCall(text) {
  ruler.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  let most = Math.min(text.length, 60);
  while (most > 4 && ruler.measureText(ending(text, most)).width > CALL.width - 14) most -= 1;
  return ending(text, most);
}

// From the lower edge of the caller to the upper edge of the callee, past the nodes between; upwards where a function calls back.
function callPoints(line, nodes, { x, tops, tall }) {
  const from = nodes[line.from], to = nodes[line.to];
  const start = [x(from.place), tops[from.layer] + (tall[from.layer] + heightOf(from)) / 2], end = [x(to.place), tops[to.layer] + (tall[to.layer] - heightOf(to)) / 2];
  const between = line.bends.flatMap(([spot, layer]) => [[x(spot), tops[layer]], [x(spot), tops[layer] + tall[layer]]]);
  return [start, ...between, end];
}

function callLine(line, nodes, where) {
  const points = callPoints(line, nodes, where), back = nodes[line.to].layer <= nodes[line.from].layer;
  const words = `${line.edge}: ${line.calls} calls of the function came by it; ${line.groups.map((group) => (group < 0 ? "unknown" : `group ${group + 1}`)).join(", ")}`;
  const attributes = { class: `calls ${behaviourClass(line.groups)} ${back ? "is-back" : ""}`, d: smooth(points), "stroke-width": (1.2 + 4 * Math.sqrt(line.weight)).toFixed(1), "marker-end": "url(#call-arrow)", "data-groups": line.groups.join(" ") };
  return shape("path", attributes, shape("title", null, words));
}

function smooth(points) {
  let path = `M${points[0].join(",")}`;
  for (let i = 1; i < points.length; i += 1) {
    const [ax, ay] = points[i - 1], [bx, by] = points[i], half = (ay + by) / 2;
    path += ` C${ax},${half} ${bx},${half} ${bx},${by}`;
  }
  return path;
}

// The short name of a call edge, on the last stretch of its line.
function callName(line, nodes, where) {
  const points = callPoints(line, nodes, where), [ax, ay] = points.at(-2), [bx, by] = points.at(-1);
  return shape("g", { class: `call-name ${behaviourClass(line.groups)}`, transform: `translate(${(ax + bx) / 2},${(ay + by) / 2})` },
    shape("title", null, line.edge), shape("rect", { x: -15, y: -10, width: 30, height: 20, rx: 10 }), shape("text", { y: 4 }, line.name));
}
