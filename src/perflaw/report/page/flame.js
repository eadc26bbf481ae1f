// A flame graph of calling contexts: width is cost, callees lie below their callers. Names only ever become text nodes.

const data = JSON.parse(document.getElementById("data").textContent);
const ROW = 19, LEAST = 0.0008, MOST_DEPTH = 200;
const MOST_ROWS = 100;
const byId = (id) => document.getElementById(id);
const flames = byId("flames"), pointed = byId("pointed"), find = byId("find");
const nodes = new Map(data.tree.map((node) => [node.id, { ...node, below: [] }]));
const entries = [];
for (const node of nodes.values()) (node.parent === null ? entries : nodes.get(node.parent).below).push(node);
let metric = data.metric, focus = null;

const cost = (node) => (node ? node.total[metric] : data.whole[metric]);
const shown = (value) => quantity(value, data.metrics[metric]);

// A colour for each module: everything of one package looks alike. Lightness suits dark letters.
function colour(name) {
  let hash = 7;
  for (const letter of name.split(".")[0]) hash = (hash * 31 + letter.codePointAt(0)) % 3600;
  return `hsl(${hash / 10} 55% 76%)`;
}

const words = (node) => {
  const own = `own ${shown(node.own[metric])}`, calls = `${node.calls.toLocaleString("en")} calls`;
  return `${node.component}: ${shown(cost(node))}, ${shareText(cost(node) / (cost(null) || 1))}, ${own}, ${calls}`;
};

function bar(node, left, share, depth, above) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = share > 0.02 ? node.component : "";
  button.setAttribute("aria-label", words(node));
  button.style.cssText = `left:${100 * left}%;width:${100 * share}%;top:${depth * ROW}px;background:${colour(node.component)}`;
  button.classList.toggle("above", above);
  button.classList.toggle("found", matches(node));
  button.addEventListener("click", () => { focus = above || node !== focus ? node : null; draw(); });
  for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => { pointed.textContent = words(node); });
  flames.append(button);
}

const matches = (node) => find.value !== "" && node.component.toLowerCase().includes(find.value.toLowerCase());

function draw() {
  flames.replaceChildren();
  const path = [];
  for (let node = focus; node && node.parent !== null; node = nodes.get(node.parent)) path.unshift(nodes.get(node.parent));
  path.forEach((node, depth) => bar(node, 0, 1, depth, true));
  const whole = cost(focus) || 1;
  let deepest = path.length;
  const waiting = [[focus ? [focus] : entries, 0, path.length]];
  while (waiting.length) {
    const [level, start, depth] = waiting.pop();
    let left = start;
    for (const node of [...level].sort((a, b) => cost(b) - cost(a))) {
      const share = cost(node) / whole;
      if (share < LEAST || depth > MOST_DEPTH) continue;
      bar(node, left, share, depth, false);
      waiting.push([node.below, left, depth + 1]);
      deepest = Math.max(deepest, depth);
      left += share;
    }
  }
  flames.style.height = `${(deepest + 1) * ROW}px`;
  count();
}

// The share of everything that matches, each stack counted once.
function count() {
  let sum = 0;
  const waiting = [...entries];
  while (find.value && waiting.length) {
    const node = waiting.pop();
    if (matches(node)) sum += cost(node);
    else waiting.push(...node.below);
  }
  byId("found").textContent = find.value ? `found: ${shareText(sum / (cost(null) || 1))}` : "";
}

function table(id, headings, rows) {
  const made = document.createElement("tbody"), head = document.createElement("thead").insertRow();
  const cell = (row, tag, text, isNumber) => {
    const one = document.createElement(tag);
    if (tag === "th") one.scope = "col";
    one.className = isNumber ? "number" : "";
    one.textContent = text;
    row.append(one);
  };
  headings.forEach((text, place) => cell(head, "th", text, place < headings.length - 1));
  for (const row of rows) {
    const line = made.insertRow();
    row.forEach((text, place) => cell(line, "td", text, place < row.length - 1));
  }
  byId(id).replaceChildren(head.parentNode, made);
}

function tables() {
  const functions = data.functions.filter((one) => one.own[metric] > 0).sort((a, b) => b.own[metric] - a.own[metric]);
  table("functions", ["own", "share", "with callees", "calls", "function"], functions.slice(0, MOST_ROWS).map((one) => [
    shown(one.own[metric]), shareText(one.own[metric] / (cost(null) || 1)), shown(one.total[metric]),
    one.calls.toLocaleString("en"), one.component,
  ]));
  const sites = data.sites.filter((one) => one.total[metric] > 0).sort((a, b) => b.total[metric] - a.total[metric]);
  table("sites", ["cost", "share", "calls", "line, and what it calls"], sites.slice(0, MOST_ROWS).map((one) => [
    shown(one.total[metric]), shareText(one.total[metric] / (cost(null) || 1)), one.calls.toLocaleString("en"),
    `${one.file}:${one.line} → ${one.callee}`,
  ]));
}

function everything() {
  const runs = data.runs.map((run) => run.id).join(", ");
  byId("summary").textContent = `run ${runs} · ${shown(cost(null))} ${metric} · ${data.next}`;
  draw();
  tables();
}

for (const name of Object.keys(data.metrics)) byId("metric").append(new Option(name, name, false, name === metric));
byId("metric").addEventListener("change", (event) => { metric = event.target.value; everything(); });
find.addEventListener("input", draw);
byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("reset").addEventListener("click", () => { focus = null; draw(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { focus = null; draw(); }
  if (event.key === "/" && document.activeElement !== find) { event.preventDefault(); find.focus(); }
});
everything();
