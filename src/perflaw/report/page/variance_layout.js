// Where the nodes of a pattern stand: a tree from the top down, every subtree in a strip of its own. Numbers in, numbers out.

const NODE = { width: 208, height: 64, across: 46, down: 58, between: 16, margin: 100 };
const STACKED = 3;

// The heaviest nodes, at most `most`: a parent weighs at least as much as its child, so no node loses its parent.
function heaviest(nodes, most) {
  if (nodes.length <= most) return nodes;
  const order = nodes.map((node, place) => ({ node, place })).sort((a, b) => b.node.vim - a.node.vim || a.place - b.place);
  const kept = new Set(order.slice(0, most).map((one) => one.node.id));
  return nodes.filter((node) => kept.has(node.id));
}

// Nodes stand depth first, parents in front: leaves take the next strip, parents the middle of their children.
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
