// The table of laws, one row a component. Of thousands of rows only those in sight are elements: they are made when they come
// into sight, and all of them are made for paper.

const COLUMNS = [
  { name: "share", title: "share", key: (row) => row.share, down: true, number: true },
  { name: "self", title: "self", key: (row) => row.self_share, down: true, number: true },
  { name: "function", title: "function", key: (row) => row.component },
  { name: "law", title: "law", key: (row) => row.coefficient, down: true },
  { name: "grows", title: "grows as", key: (row) => row.slope, down: true },
  { name: "predicted", title: "", key: (row) => row.cost, down: true, number: true },
  { name: "calls", title: "calls", key: (row) => row.calls, down: true, number: true },
  { name: "verdict", title: "verdict", key: (row) => OUTCOMES.indexOf(row.outcome) * 3 + ["law", "inconclusive", "none"].indexOf(row.verdict) },
];

// The rows in the order shown; `index` is a row's place in the report, `element` stands where the row is in sight.
let order = [];
let listed = [];
const BEYOND = 6; // rows made above and below those in sight
const sorting = { column: null, down: false };

function showTable() {
  const metrics = new Set(report.rows.map((row) => row.metric));
  const several = metrics.size > 1;
  COLUMNS.find((column) => column.name === "law").title = `law of ${several ? "cost" : [...metrics][0]} per ${report.per}`;
  COLUMNS.find((column) => column.name === "predicted").title = report.predicted;
  order = report.rows.map((row, index) => ({ index, row, several, hidden: false, element: null }));
  // The style lays rows out one by one, which removes the roles of a table from them: they are set here.
  const head = element("tr", { role: "row" }, COLUMNS.map(heading));
  const body = element("tbody", { role: "rowgroup" }), scroll = document.getElementById("scroll");
  scroll.append(
    element("table", { id: "laws", role: "grid", "aria-label": "Laws, one a row" },
      element("thead", { role: "rowgroup" }, head), body));
  scroll.addEventListener("scroll", () => showRows(), { passive: true });
  new ResizeObserver(() => showRows()).observe(scroll);
  addEventListener("beforeprint", () => showRows(true));
  addEventListener("afterprint", () => showRows());
}

const rowHeight = () => parseFloat(getComputedStyle(document.getElementById("laws")).getPropertyValue("--row")) || 43;

// Makes the rows in sight, and the selected one wherever it is: it holds the focus.
function showRows(all = false) {
  const scroll = document.getElementById("scroll"), body = document.querySelector("#laws tbody"), height = rowHeight();
  const first = Math.floor(scroll.scrollTop / height) - BEYOND, last = Math.ceil((scroll.scrollTop + scroll.clientHeight) / height) + BEYOND;
  body.style.height = `${listed.length * height}px`;
  const shown = listed.map((entry, place) => [entry, place]).filter(([entry, place]) => all || (place >= first && place <= last) || entry.index === selected);
  const kept = new Set(shown.map(([entry]) => entry));
  for (const entry of order) if (entry.element && !kept.has(entry)) { entry.element.remove(); entry.element = null; }
  let before = null;
  for (const [entry, place] of shown) {
    const row = (entry.element ??= rowElement(entry.row, entry.index, entry.several));
    row.style.top = `${place * height}px`;
    row.setAttribute("aria-rowindex", place + 2);
    row.setAttribute("aria-selected", entry.index === selected);
    row.tabIndex = entry.index === selected ? 0 : -1;
    if (row.parentNode !== body || row.previousElementSibling !== before) body.insertBefore(row, before ? before.nextSibling : body.firstChild);
    before = row;
  }
}

// Whole runs, and a row for each part of their cost that is no function: it has no calls to show, so nothing is selected.
function showWhole({ text, parts }) {
  const body = parts.map((part) => element("tr", null,
    element("td", { class: "number" }, part.share), named("td", null, part.component), named("td", null, part.law),
    element("td", null, part.growth, element("span", { class: "quiet" }, ` ${part.interval}`)),
    element("td", { class: "number" }, predictedText(part.predicted))));
  const heads = ["share", "no function", `law per ${report.execution}`, "grows as", report.predicted];
  const head = element("tr", null, heads.map((title, i) => element("th", { scope: "col", class: i % 4 ? null : "number" }, title)));
  const whole = document.getElementById("whole");
  whole.hidden = false;
  whole.append(
    element("p", { class: "small" }, text),
    parts.length ? element("table", { class: "plain" }, element("thead", null, head), element("tbody", null, body)) : "");
}

function heading(column) {
  const button = element("button", { type: "button", onclick: () => { sortBy(column); remember(); } }, column.title);
  const classes = `c-${column.name}${column.number ? " number" : ""}`;
  return element("th", { role: "columnheader", class: classes, "aria-sort": "none", "data-column": column.name }, button);
}

function rowElement(row, index, several) {
  const parameters = row.parameters.length ? `(${row.parameters.join(", ")})` : "";
  const metric = several ? ` · ${row.metric}` : "";
  const cell = (attributes, ...content) => element("td", { role: "gridcell", ...attributes }, ...content);
  return element("tr", { role: "row", tabindex: -1, "aria-selected": "false", "data-index": index, "data-verdict": row.verdict, "data-outcome": row.outcome },
    cell({ class: "c-share number" }, element("div", { class: "share" }, bar(row.share), row.text.share)),
    cell({ class: "c-self number" }, row.text.self),
    cell({ class: "c-function", title: `${row.component}${parameters}\n${row.text.place}` },
      element("div", { class: "clip" }, named("span", { class: "name" }, row.component), named("span", { class: "quiet" }, parameters)),
      named("div", { class: "clip small quiet" }, row.text.place + metric)),
    cell({ class: "c-law" }, named("div", { class: "clip2", title: row.text.law }, row.text.law)),
    cell({ class: "c-grows" }, named("div", { class: "clip", title: row.growth }, row.growth), element("div", { class: "clip small quiet", title: row.interval }, row.interval)),
    cell({ class: "c-predicted number", title: row.text.at ? `at ${row.text.at}` : null }, predictedText(row.text.predicted)),
    cell({ class: "c-calls number" }, row.text.calls),
    cell({ class: "c-verdict", title: row.reason || null }, badge(row.verdict), outcomeBadge(row)));
}

const badge = (verdict) => element("span", { class: `badge is-${verdict}` }, VERDICTS[verdict]);

function predictedText(text) {
  const [value, ...rest] = text.split(" (");
  return element("div", { class: "clip" }, value, rest.length ? element("span", { class: "quiet" }, ` (${rest.join(" (")}`) : "");
}

function bar(share) {
  const fill = element("span", { class: "fill" });
  fill.style.width = `${Math.min(100, Math.max(0, share * 100))}%`;
  return element("span", { class: "bar", "aria-hidden": "true" }, fill);
}

// A second click reverses the order. Array.sort is stable: earlier sortings decide among equal rows.
function sortBy(column, down = sorting.column === column ? !sorting.down : Boolean(column.down)) {
  sorting.down = down;
  sorting.column = column;
  order.sort((a, b) => compare(column.key(a.row), column.key(b.row), sorting.down));
  listed = order.filter((entry) => !entry.hidden);
  showRows();
  for (const cell of document.querySelectorAll("#laws th")) {
    const mine = cell.dataset.column === column.name;
    cell.setAttribute("aria-sort", mine ? (sorting.down ? "descending" : "ascending") : "none");
  }
}

// Rows without a value stand last in either order.
function compare(a, b, down) {
  if (a == null || b == null) return (a == null) - (b == null);
  const way = typeof a === "string" ? a.localeCompare(b, "en") : a - b;
  return down ? -way : way;
}

// `usual` is the share that the page itself starts with.
const filter = { text: "", verdict: "all", check: "all", share: 0, usual: 0 };
// Longer lists start without the small functions at their end.
const LONG = 60;

function showFilters() {
  if (report.rows.length > LONG) filter.share = filter.usual = 0.001;
  const input = (name, change) => (event) => { filter[name] = change(event.target.value); applyFilters(); remember(); };
  const choose = (name) => (value) => { filter[name] = value; applyFilters(); remember(); };
  const form = document.getElementById("filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.append(
    element("input", { type: "search", id: "text", placeholder: "filter: function, file, law", spellcheck: "false",
      "aria-label": "Filter by function, file or law", oninput: input("text", (value) => value.toLowerCase().trim()) }),
    choiceOf("Verdict", verdictChoices(), filter.verdict, choose("verdict"), "verdict"),
    report.outcomes ? choiceOf(report.outcomes.verb, outcomeChoices(), filter.check, choose("check"), "check") : "",
    element("label", null, "hide below ",
      element("input", { type: "number", id: "share", min: 0, max: 100, step: "any", value: filter.share * 100,
        oninput: input("share", (value) => Number(value) / 100 || 0) }), " % share"),
    element("output", { id: "shown" }));
  applyFilters();
}

function verdictChoices() {
  const counts = report.header.verdicts;
  const kinds = Object.entries(VERDICTS).map(([verdict, words]) => {
    const noun = verdict === "law" && counts.law !== 1 ? "laws" : words;
    return [verdict, `${counts[verdict].toLocaleString("en")} ${noun}`, counts[verdict] === 0];
  });
  return [["all", `all ${report.rows.length.toLocaleString("en")}`], ...kinds];
}

function applyFilters() {
  for (const entry of order) entry.hidden = !passes(entry.row);
  listed = order.filter((entry) => !entry.hidden);
  document.getElementById("laws").setAttribute("aria-rowcount", listed.length + 1);
  showRows();
  const all = report.rows.length, shown = listed.length;
  const words = shown === all ? "" : shown ? `${shown.toLocaleString("en")} of ${all.toLocaleString("en")} shown` : "none shown";
  document.getElementById("shown").replaceChildren(words, shown === all ? "" : showAllButton());
}

function passes(row) {
  if (filter.verdict !== "all" && row.verdict !== filter.verdict) return false;
  if (filter.check !== "all" && row.outcome !== filter.check) return false;
  // A violated law is never too small to be shown.
  if (filter.share > 0 && row.share < filter.share && row.outcome !== "violated") return false;
  row.searched ??= [row.component, row.text.place, row.text.law, row.growth, ...row.parameters].join("\n").toLowerCase();
  return row.searched.includes(filter.text);
}

function showAllButton() {
  return element("button", { type: "button", class: "link", onclick: clearFilters }, "show all");
}

function clearFilters() {
  Object.assign(filter, { text: "", verdict: "all", check: "all", share: 0 });
  showChosen();
  applyFilters();
  remember();
}

function clearText() {
  filter.text = document.getElementById("text").value = "";
  applyFilters();
  remember();
}

// Shows the filter in its fields, wherever it came from.
function showChosen() {
  document.getElementById("text").value = filter.text;
  document.getElementById("share").value = filter.share * 100;
  for (const [name, value] of Object.entries({ verdict: filter.verdict, check: filter.check })) {
    showPressed(name, value);
  }
}
