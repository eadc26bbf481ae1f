// A flame graph of calling contexts: width is cost, callees lie below their callers. Below it the costliest functions and lines.

// `data` is the document of `perflaw show`, `root` the element that shows it.
const ROW = 19, LEAST = 0.0008, MOST_DEPTH = 200;
const MOST_ROWS = 100;
const nodes = new Map(data.tree.map((node) => [node.id, { ...node, below: [] }]));
const entries = [];
for (const node of nodes.values()) (node.parent === null ? entries : nodes.get(node.parent).below).push(node);
let metric = data.metric, focus = null;

const cost = (node) => (node ? node.total[metric] : data.whole[metric]);
const shown = (value) => quantity(value, data.metrics[metric]);

const summary = element("p", { id: "summary", class: "quiet" });
const choice = element("select", { id: "metric", onchange: (event) => { metric = event.target.value; everything(); } },
  Object.keys(data.metrics).map((name) => element("option", { value: name, selected: name === metric }, name)));
const find = element("input", { id: "find", type: "search", autocomplete: "off", oninput: () => draw() });
const foundShare = element("output", { id: "found-share", "aria-live": "polite" });
const flames = element("section", { id: "flames", "aria-label": "Flame graph" });
const pointed = element("p", { id: "pointed", class: "quiet", "aria-live": "polite" });
const functions = element("div", { class: "wide-scroll", tabindex: "0", role: "region", "aria-label": "Functions by own cost", id: "functions" });
const sites = element("div", { class: "wide-scroll", tabindex: "0", role: "region", "aria-label": "Lines by the cost of their calls", id: "sites" });
root.replaceChildren(summary,
  element("form", { id: "controls", role: "search", onsubmit: (event) => event.preventDefault() }, element("label", null, "cost ", choice), element("label", null, "find ", find),
    element("button", { id: "reset", type: "button", onclick: () => { focus = null; draw(); } }, "whole program"), foundShare),
  flames, pointed, element("h2", null, "Functions by own cost"), functions, element("h2", null, "Lines by the cost of their calls"), sites);

// A colour for each module: everything of one package looks alike. Lightness suits dark letters.
function colourOf(name) {
  let hash = 7;
  for (const letter of name.split(".")[0]) hash = (hash * 31 + letter.codePointAt(0)) % 3600;
  return `hsl(${hash / 10} 55% 76%)`;
}

const words = (node) => {
  const own = `own ${shown(node.own[metric])}`, calls = `${node.calls.toLocaleString("en")} calls`;
  return `${node.component}: ${shown(cost(node))}, ${shareText(cost(node) / (cost(null) || 1))}, ${own}, ${calls}`;
};

function flame(node, left, share, depth, above) {
  const button = element("button", { type: "button", "aria-label": words(node), onclick: () => { focus = above || node !== focus ? node : null; draw(); } }, share > 0.02 ? node.component : "");
  button.style.cssText = `left:${100 * left}%;width:${100 * share}%;top:${depth * ROW}px;background:${colourOf(node.component)}`;
  button.classList.toggle("above", above);
  button.classList.toggle("found", matches(node));
  for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => { pointed.textContent = words(node); });
  flames.append(button);
}

const matches = (node) => find.value !== "" && node.component.toLowerCase().includes(find.value.toLowerCase());

function draw() {
  flames.replaceChildren();
  const path = [];
  for (let node = focus; node && node.parent !== null; node = nodes.get(node.parent)) path.unshift(nodes.get(node.parent));
  path.forEach((node, depth) => flame(node, 0, 1, depth, true));
  const whole = cost(focus) || 1;
  let deepest = path.length;
  const waiting = [[focus ? [focus] : entries, 0, path.length]];
  while (waiting.length) {
    const [level, start, depth] = waiting.pop();
    let left = start;
    for (const node of [...level].sort((a, b) => cost(b) - cost(a))) {
      const share = cost(node) / whole;
      if (share < LEAST || depth > MOST_DEPTH) continue;
      flame(node, left, share, depth, false);
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
  foundShare.textContent = find.value ? `found: ${shareText(sum / (cost(null) || 1))}` : "";
}

function tables() {
  const part = (value) => shareText(value / (cost(null) || 1));
  const ofFunctions = data.functions.filter((one) => one.own[metric] > 0).sort((a, b) => b.own[metric] - a.own[metric]);
  functions.replaceChildren(plainTable(["own", "share", "with callees", "calls", "function"], ofFunctions.slice(0, MOST_ROWS).map((one) => [
    shown(one.own[metric]), part(one.own[metric]), shown(one.total[metric]), one.calls.toLocaleString("en"), named("span", null, one.component)]), [0, 1, 2, 3]));
  const ofSites = data.sites.filter((one) => one.total[metric] > 0).sort((a, b) => b.total[metric] - a.total[metric]);
  sites.replaceChildren(plainTable(["cost", "share", "calls", "line, and what it calls"], ofSites.slice(0, MOST_ROWS).map((one) => [
    shown(one.total[metric]), part(one.total[metric]), one.calls.toLocaleString("en"), named("span", null, `${one.file}:${one.line} → ${one.callee}`)]), [0, 1, 2]));
}

function everything() {
  const runs = data.runs.map((run) => run.id).join(", ");
  summary.textContent = `run ${runs} · ${shown(cost(null))} ${metric} · ${data.next}`;
  draw();
  tables();
}

root.addEventListener("keydown", (event) => { if (event.key === "Escape") { focus = null; draw(); } });
document.addEventListener("keydown", (event) => {
  if (root.classList.contains("away") || event.target.closest("input, select")) return;
  if (event.key === "Escape") { focus = null; draw(); }
  if (event.key === "/") { event.preventDefault(); find.focus(); }
});
everything();
