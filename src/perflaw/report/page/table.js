// The overview: one row a component. Rows are built once; sorting moves them, filtering hides them.

const COLUMNS = [
  { name: "share", title: "share", key: (row) => row.share, down: true, number: true },
  { name: "self", title: "self", key: (row) => row.self, down: true, number: true },
  { name: "function", title: "function", key: (row) => row.name },
  { name: "law", title: "law", key: (row) => row.coefficient, down: true },
  { name: "grows", title: "grows as", key: (row) => row.slope, down: true },
  { name: "predicted", title: "", key: (row) => row.cost, down: true, number: true },
  { name: "calls", title: "calls", key: (row) => row.calls, down: true, number: true },
  { name: "verdict", title: "verdict", key: (row) => OUTCOMES.indexOf(row.outcome) * 3 + ["law", "inconclusive", "none"].indexOf(row.verdict) },
];

// Row elements in the order shown; `order[i].index` is the row's place in the report.
let order = [];
const sorting = { column: null, down: false };

function showTable() {
  const metrics = new Set(report.rows.map((row) => row.metric));
  const several = metrics.size > 1;
  COLUMNS.find((column) => column.name === "law").title = several ? "law, per call" : `law of ${[...metrics][0]}, per call`;
  COLUMNS.find((column) => column.name === "predicted").title = report.predicted.heading;
  order = report.rows.map((row, index) => ({ index, row, element: rowElement(row, index, several) }));
  // The style lays rows out one by one, which takes the table's roles from them: so they are given.
  const head = element("tr", { role: "row" }, COLUMNS.map(heading));
  const body = element("tbody", { role: "rowgroup" }, order.map((entry) => entry.element));
  document.getElementById("scroll").append(
    element("table", { id: "laws", role: "grid", "aria-label": "Laws, one a row" },
      element("thead", { role: "rowgroup" }, head), body));
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
    cell({ class: "c-share number" }, element("div", { class: "share" }, bar(row.share), row.shares[0])),
    cell({ class: "c-self number" }, row.shares[1]),
    cell({ class: "c-function", title: `${row.name}${parameters}\n${row.place}` },
      element("div", { class: "clip" }, named("span", { class: "name" }, row.name), named("span", { class: "quiet" }, parameters)),
      named("div", { class: "clip small quiet" }, row.place + metric)),
    cell({ class: "c-law" }, named("div", { class: "clip2", title: row.law }, row.law)),
    cell({ class: "c-grows" }, named("div", { class: "clip", title: row.grows }, row.grows), element("div", { class: "clip small quiet", title: row.slopes }, row.slopes)),
    cell({ class: "c-predicted number", title: row.at ? `at ${row.at}` : null }, predictedText(row.predicted)),
    cell({ class: "c-calls number" }, row.callsText),
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

// A second click turns the order round. Array.sort is stable: earlier sortings decide among equals.
function sortBy(column, down = sorting.column === column ? !sorting.down : Boolean(column.down)) {
  sorting.down = down;
  sorting.column = column;
  order.sort((a, b) => compare(column.key(a.row), column.key(b.row), sorting.down));
  document.querySelector("#laws tbody").append(...order.map((entry) => entry.element));
  for (const cell of document.querySelectorAll("#laws th")) {
    const mine = cell.dataset.column === column.name;
    cell.setAttribute("aria-sort", mine ? (sorting.down ? "descending" : "ascending") : "none");
  }
}

// What has no value stands last either way.
function compare(a, b, down) {
  if (a == null || b == null) return (a == null) - (b == null);
  const way = typeof a === "string" ? a.localeCompare(b, "en") : a - b;
  return down ? -way : way;
}
