// The report's data, and what the person chose in it. The address holds the choice, so that a link shows the same.

const report = JSON.parse(document.getElementById("data").textContent);
const inflated = new Map();

// Rows come with the names of their fields once.
const joinedRow = (names, values) => Object.fromEntries(names.map((name, i) => [name, values[i]]));
const unjoined = report.rows;
report.rows = unjoined.values.map((values, i) => ({ ...joinedRow(unjoined.names, values), text: joinedRow(unjoined.words, unjoined.texts[i]) }));

// The component of row `index`: its document (docs/json.md), the words about it, and the numbers behind its charts.
// Components are stored deflated, and inflated once.
async function componentData(index) {
  if (!inflated.has(index)) {
    const { document, text, chart } = await inflate(report.annotations[index]);
    inflated.set(index, { ...chart, document, text });
  }
  return inflated.get(index);
}

async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(plain).text());
}

// The choices for the charts; null means the page's own choice. `held` and `at` are by feature.
const view = { axes: null, against: "feature", feature: null, colour: "scope", alternatives: false, bands: null, held: {}, at: {}, theme: "auto", redraw: () => {} };
const CHOSEN = { x: "feature", axes: "axes", residuals: "against", colour: "colour" };
const DEFAULTS = { ...view };

// A slider makes hundreds of addresses in seconds, and browsers refuse so many: the last one is kept.
let waiting = null;
// The last address that the page set; a different one was just typed, and its event is on the way.
let known = location.hash;

function remember() {
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (location.hash === known) rememberNow(); }, 120);
}

function rememberNow() {
  clearTimeout(waiting);
  history.replaceState(null, "", `#${addressOf()}`);
  known = location.hash;
}

function addressOf() {
  const one = viewNow(), parts = one.address().filter(([, value]) => value != null);
  if (view.theme !== "auto") parts.push(["theme", view.theme]);
  const key = parts.find(([name]) => name === one.key)?.[1];
  const rest = parts.filter(([name]) => name !== one.key).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
  return `${key == null ? `/${one.name}` : `/${one.one ?? one.name}/${encodeURIComponent(key)}`}${rest && `?${rest}`}`;
}

function lawsAddress() {
  const parts = selected == null ? [] : [["component", linkable(report.rows[selected].key)]];
  for (const [name, field] of Object.entries(CHOSEN)) if (view[field] !== DEFAULTS[field]) parts.push([name, linkable(view[field])]);
  if (view.alternatives) parts.push(["alternatives", "1"]);
  if (view.bands != null) parts.push(["bands", view.bands ? "1" : "0"]);
  for (const field of ["held", "at"]) {
    for (const [name, value] of Object.entries(view[field])) parts.push([`${field}.${linkable(name)}`, linkable(String(value))]);
  }
  return [...parts, ...filterState()];
}

function filterState() {
  const parts = [];
  if (filter.text) parts.push(["filter", linkable(filter.text)]);
  if (filter.verdict !== "all") parts.push(["verdict", filter.verdict]);
  if (filter.check !== "all") parts.push(["check", filter.check]);
  if (filter.share !== filter.usual) parts.push(["share", String(filter.share * 100)]);
  if (sorting.column) parts.push(["sort", (sorting.down ? "-" : "") + sorting.column.name]);
  return parts;
}

// The address as [name, value] pairs, the view and what is selected in it among them. Parts that cannot be read are left
// out. Older links have no path, and a bare #name is a link to a component.
function addressParts() {
  known = location.hash;
  const hash = location.hash.slice(1);
  if (!hash.startsWith("/")) return olderParts(hash);
  const at = hash.indexOf("?"), [, name, ...key] = (at < 0 ? hash : hash.slice(0, at)).split("/");
  const one = VIEWS.find((other) => other.name === name || other.one === name);
  const parts = pairsOf(at < 0 ? "" : hash.slice(at + 1));
  parts.set("view", one?.name);
  if (one?.key && key.length) parts.set(one.key, unescaped(key.join("/")));
  return parts;
}

function olderParts(hash) {
  const parts = hash && !hash.includes("=") ? new Map([["component", unescaped(hash)]]) : pairsOf(hash);
  const one = VIEWS.find((other) => other.old === parts.get("view"));
  parts.set("view", one?.name ?? (parts.has("component") ? "components" : undefined));
  return parts;
}

function pairsOf(text) {
  return new Map(text.split("&").filter((part) => part.includes("=")).map((part) => {
    const at = part.indexOf("=");
    return [unescaped(part.slice(0, at)), unescaped(part.slice(at + 1))];
  }));
}

function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Takes the choices for the charts and the table from the address.
function recall(parts) {
  const allowed = { axes: ["log", "linear"], residuals: ["feature", "fitted"], colour: ["scope", "run"] };
  for (const [name, field] of Object.entries(CHOSEN)) {
    const value = parts.get(name);
    if (value != null && (!allowed[name] || allowed[name].includes(value))) view[field] = value;
  }
  if (parts.has("alternatives")) view.alternatives = parts.get("alternatives") === "1";
  if (parts.has("bands")) view.bands = parts.get("bands") === "1";
  for (const field of ["held", "at"]) {
    for (const [name, value] of parts) {
      if (!name.startsWith(`${field}.`) || value === "") continue;
      view[field][name.slice(field.length + 1)] = Number.isNaN(Number(value)) ? value : Number(value);
    }
  }
  recallTable(parts);
}

function recallTable(parts) {
  if (parts.has("filter")) filter.text = parts.get("filter").toLowerCase();
  if (["all", ...Object.keys(VERDICTS)].includes(parts.get("verdict"))) filter.verdict = parts.get("verdict");
  if (["all", ...OUTCOMES].includes(parts.get("check"))) filter.check = parts.get("check");
  if (parts.has("share")) filter.share = Number(parts.get("share")) / 100 || 0;
  const sort = parts.get("sort");
  const column = COLUMNS.find((one) => one.name === sort?.replace(/^-/, ""));
  if (column) sortBy(column, sort.startsWith("-"));
}
