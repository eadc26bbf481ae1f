// A pattern drawn as the paper draws it: boxes are Tasks, ovals Contrasts, dashed boxes Contributors, dotted back-edges carry shares.

const SVG_SPACE = document.documentElement.namespaceURI.replace("1999/xhtml", "2000/svg");
const MOST_NODES = 40;
const ruler = document.createElement("canvas").getContext("2d");

function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG_SPACE, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child != null));
  return made;
}

// The end of a name that fits into a node.
function fitting(text) {
  ruler.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  let most = Math.min(text.length, 80);
  while (most > 4 && ruler.measureText(ending(text, most)).width > NODE.width - 46) most -= 1;
  return ending(text, most);
}

// The end of a name tells more than its start.
const ending = (text, most) => (text.length > most ? `…${text.slice(1 - most)}` : text);

function drawPattern(pattern, chosen, choose, all = false) {
  const nodes = heaviest(pattern.nodes, all ? Infinity : MOST_NODES);
  const { spots, width, height } = layOut(nodes);
  const drawn = pattern.edges.filter((edge) => spots.has(edge.to) && spots.has(edge.from));
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Pattern graph" },
    shape("defs", null, marker()),
    [...spots.values()].filter((spot) => spot.parent).map((spot) => shape("path", { class: "tree", d: treePath(spot) })));
  const labels = [];
  for (const edge of drawn) {
    const mine = drawn.filter((other) => other.to === edge.to);
    const { path, label } = backEdge(spots.get(edge.from), spots.get(edge.to), mine.indexOf(edge), mine.length);
    const lit = edge.to === chosen || edge.from === chosen ? "lit" : "";
    svg.append(shape("path", { class: `back ${lit}`, d: path, "marker-end": "url(#arrow)" }));
    const words = `${edge.net} of the variance of (${edge.to}) comes from (${edge.from}); Var(Y)/Var(X) is ${edge.self}`;
    labels.push(shape("text", { class: `back-share ${lit}`, x: label.x, y: label.y + 4 }, shape("title", null, words), edge.net));
  }
  svg.append(...[...spots.values()].map((spot) => nodeShape(spot, chosen, choose)), ...labels);
  return { svg, left: pattern.nodes.length - nodes.length };
}

const marker = () => shape("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
  shape("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }));

function nodeShape(spot, chosen, choose) {
  const { node, x, y } = spot, name = functionOf(node.f).name;
  const words = `(${node.id}) ${name}: ${node.kind}, ${node.n} calls, mean ${node.mean}, CoV ${node.cov}, VIM ${node.vimText}`;
  const press = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(node.id); } };
  const group = shape("g", { class: `node is-${node.kind} cause-${node.cause}`, "data-node": node.id, tabindex: 0, role: "button",
    "aria-pressed": String(node.id === chosen), "aria-label": words, transform: `translate(${x},${y})`, onclick: () => choose(node.id), onkeydown: press },
  shape("title", null, [words, ...node.contexts].join("\n")), outline(node.kind));
  const lines = [
    ["name", `(${node.id}) ${fitting(name)}`], ["figures", `μ ${node.mean}   γ ${node.cov}`],
    ["figures", node.cause === "interference" ? `${node.off} off the CPU` : `N ${node.n}   V ${node.vimText}`],
  ];
  lines.forEach(([kind, text], i) => group.append(shape("text", { class: kind, x: NODE.width / 2, y: 19 + i * 17 }, text)));
  return group;
}

function outline(kind) {
  const { width, height } = NODE;
  if (kind === "Contrast") return shape("ellipse", { cx: width / 2, cy: height / 2, rx: width / 2 + 14, ry: height / 2 + 5 });
  return shape("rect", { width, height, rx: 3 });
}
