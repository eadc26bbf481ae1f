// A pattern drawn as in the paper: boxes are Tasks, ovals Contrasts, dashed boxes Contributors, dotted back-edges carry shares.

const MOST_NODES = 40;
const ruler = document.createElement("canvas").getContext("2d");

// The end of a name that fits into a node.
function fitting(text) {
  ruler.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  let most = Math.min(text.length, 80);
  while (most > 4 && ruler.measureText(ending(text, most)).width > NODE.width - 46) most -= 1;
  return ending(text, most);
}

// A long name is cut at its start, which says less than its end.
const ending = (text, most) => (text.length > most ? `…${text.slice(1 - most)}` : text);

function drawPattern(pattern, chosen, choose, all = false) {
  const nodes = heaviest(pattern.nodes, all ? Infinity : MOST_NODES);
  const { spots, width, height } = layOut(nodes);
  const drawn = pattern.contributions.filter((edge) => spots.has(edge.to) && spots.has(edge.from));
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Pattern graph" },
    shape("defs", null, marker()),
    [...spots.values()].filter((spot) => spot.parent).map((spot) => shape("path", { class: "tree", d: treePath(spot) })));
  const labels = [];
  for (const edge of drawn) {
    const mine = drawn.filter((other) => other.to === edge.to);
    const { path, label } = backEdge(spots.get(edge.from), spots.get(edge.to), mine.indexOf(edge), mine.length);
    const lit = edge.to === chosen || edge.from === chosen ? "lit" : "";
    svg.append(shape("path", { class: `back ${lit}`, d: path, "marker-end": "url(#arrow)" }));
    const words = `${edge.text.cf_net} of the variance of (${edge.to}) comes from (${edge.from}); Var(Y)/Var(X) is ${edge.text.cf_self}`;
    labels.push(shape("text", { class: `back-share ${lit}`, x: label.x, y: label.y + 4 }, shape("title", null, words), edge.text.cf_net));
  }
  svg.append(...[...spots.values()].map((spot) => nodeShape(spot, chosen, choose)), ...labels);
  return { svg, left: pattern.nodes.length - nodes.length };
}

const marker = () => shape("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
  shape("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }));

function nodeShape(spot, chosen, choose) {
  const { node, x, y } = spot, name = functionOf(node.function).name;
  const words = `(${node.id}) ${name}: ${node.type}, ${node.text.n} calls, mean ${node.text.mean}, CoV ${node.text.cov}, VIM ${node.text.vim}`;
  const press = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(node.id); } };
  const group = shape("g", { class: `node is-${node.type} cause-${node.cause}`, "data-node": node.id, tabindex: 0, role: "button",
    "aria-pressed": String(node.id === chosen), "aria-label": words, transform: `translate(${x},${y})`, onclick: () => choose(node.id), onkeydown: press },
  shape("title", null, [words, ...node.contexts].join("\n")), outline(node.type));
  const lines = [
    ["name", `(${node.id}) ${fitting(name)}`], ["figures", `μ ${node.text.mean}   γ ${node.text.cov}`],
    ["figures", ["interference", "waiting"].includes(node.cause) ? `${node.text.off_cpu} off the CPU` : `N ${node.text.n}   V ${node.text.vim}`],
  ];
  lines.forEach(([kind, text], i) => group.append(shape("text", { class: kind, x: NODE.width / 2, y: 19 + i * 17 }, text)));
  return group;
}

function outline(kind) {
  const { width, height } = NODE;
  if (kind === "Contrast") return shape("ellipse", { cx: width / 2, cy: height / 2, rx: width / 2 + 14, ry: height / 2 + 5 });
  return shape("rect", { width, height, rx: 3 });
}

const NODE = { width: 208, height: 64, across: 46, down: 58, between: 16, margin: 100 };
const STACKED = 3;

// The heaviest nodes, at most `most`. A parent weighs at least as much as its child, so no node loses its parent.
function heaviest(nodes, most) {
  if (nodes.length <= most) return nodes;
  const order = nodes.map((node, place) => ({ node, place })).sort((a, b) => b.node.vim - a.node.vim || a.place - b.place);
  const kept = new Set(order.slice(0, most).map((one) => one.node.id));
  return nodes.filter((node) => kept.has(node.id));
}

// Nodes stand depth first: leaves take the next strip, parents the middle of their children.
// Many leaves of one parent stand below each other, so that wide trees stay readable.
function layOut(nodes) {
  const spots = new Map();
  for (const node of nodes) {
    const parent = node.parent == null ? null : spots.get(node.parent);
    const spot = { node, parent, depth: parent ? parent.depth + 1 : 0, children: [], stacked: false };
    parent?.children.push(spot);
    spots.set(node.id, spot);
  }
  const root = spots.get(nodes[0].id), width = place(root, NODE.margin) - NODE.across + NODE.margin;
  const bottom = Math.max(...[...spots.values()].map((spot) => spot.y));
  return { spots, width, height: bottom + NODE.height + 14 };
}

// Places a subtree from `left` on; returns where the next one starts.
function place(spot, left) {
  spot.y = 14 + spot.depth * (NODE.height + NODE.down);
  const leaves = spot.children.filter((child) => !child.children.length);
  const inStack = leaves.length >= STACKED ? leaves : [];
  let next = left;
  for (const child of spot.children) if (!inStack.includes(child)) next = place(child, next);
  inStack.forEach((leaf, i) => {
    const y = spot.y + NODE.height + NODE.down + i * (NODE.height + NODE.between);
    Object.assign(leaf, { x: next + 34, y, stacked: true });
  });
  if (inStack.length) next += NODE.width + NODE.across + 34;
  const xs = spot.children.map((child) => child.x);
  spot.x = xs.length ? (Math.min(...xs) + Math.max(...xs)) / 2 : left;
  return Math.max(next, left + NODE.width + NODE.across);
}

// The way from a parent to a child; to stacked leaves along their left side.
function treePath({ x, y, parent, stacked }) {
  const fromX = parent.x + NODE.width / 2, fromY = parent.y + NODE.height, half = fromY + NODE.down / 2;
  if (stacked) return `M${fromX},${fromY} V${half} H${x - 26} V${y + NODE.height / 2} H${x}`;
  const toX = x + NODE.width / 2;
  return `M${fromX},${fromY} C${fromX},${half} ${toX},${half} ${toX},${y}`;
}

// A back-edge from where the variance comes from up to where it is seen, beside the boxes: left where its source stands left.
function backEdge(source, target, order, places) {
  const left = source.x < target.x;
  const side = (spot) => (left ? spot.x : spot.x + NODE.width);
  const from = { x: side(source), y: source.y + NODE.height / 2 };
  const to = { x: side(target), y: target.y + (NODE.height * (order + 1)) / (places + 1) };
  const out = (left ? -1 : 1) * (14 + 24 * Math.min(3, source.depth - target.depth));
  const far = left ? Math.min(from.x, to.x) + out : Math.max(from.x, to.x) + out;
  const near = Math.abs(from.x - to.x) < NODE.width;
  const bend = near ? [far, from.y, far, to.y] : [from.x + out, (from.y + to.y) / 2, to.x + out * 1.4, to.y];
  const middle = (a, b, c, d) => (a + 3 * b + 3 * c + d) / 8;
  return {
    path: `M${from.x},${from.y} C${bend[0]},${bend[1]} ${bend[2]},${bend[3]} ${to.x},${to.y}`,
    label: { x: middle(from.x, bend[0], bend[2], to.x), y: middle(from.y, bend[1], bend[3], to.y) },
  };
}
