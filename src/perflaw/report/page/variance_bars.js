// Bars of shares, as elements: the budget with its interval beside cf_net, what of a part varies, one metric beside another.

const asPercent = (part) => `${(part * 100).toFixed(1)}%`;

// A share as a bar on an axis that holds all of them; negative ones reach to the left of zero.
function shareBar(value, scale, kind, low = null, high = null) {
  const at = (part) => (Math.min(scale.high, Math.max(scale.low, part)) - scale.low) / (scale.high - scale.low);
  const zero = at(0), end = at(value ?? 0);
  const box = element("span", { class: `vbar ${kind}`, "aria-hidden": "true" }, element("span", { class: "vfill" }));
  box.firstChild.style.cssText = `left:${asPercent(Math.min(zero, end))};width:${asPercent(Math.abs(end - zero))}`;
  if (low != null && high != null) {
    const line = element("span", { class: "whisker" });
    line.style.cssText = `left:${asPercent(at(low))};width:${asPercent(at(high) - at(low))}`;
    box.append(line);
  }
  return box;
}

function scaleOf(values) {
  const known = values.filter((value) => value != null);
  return { low: Math.min(0, ...known), high: Math.max(0.01, ...known) };
}

// All rows in one bar of 100 %; rows that are cheaper in the tail are left to the table.
function stackedBar(rows) {
  const positive = rows.filter((row) => row.share > 0);
  const whole = positive.reduce((sum, row) => sum + row.share, 0) || 1;
  const parts = positive.map((row, i) => {
    const part = element("span", { class: `stack s${Math.min(i, 6)}`, title: `${row.text} ${row.where}` }, row.share / whole > 0.08 ? row.text : "");
    part.style.width = asPercent(row.share / whole);
    return part;
  });
  return element("div", { class: "stacked", role: "img", "aria-label": rows.map((row) => `${row.text} ${row.where}`).join(", ") }, parts);
}

const SPLITS = ["called or not", "trip count", "cost per call"];

// What of a part's variance is what: three segments of one bar.
function splitBar(shares) {
  if (!shares) return "";
  const parts = shares.map((share, i) => {
    const part = element("span", { class: `split p${i}`, title: `${SPLITS[i]} ${Math.round((share ?? 0) * 100)} %` });
    part.style.width = asPercent(share ?? 0);
    return part;
  });
  return element("div", { class: "splits", role: "img", "aria-label": SPLITS.map((name, i) => `${name} ${Math.round((shares[i] ?? 0) * 100)} %`).join(", ") }, parts);
}

const splitLegend = () => element("p", { class: "legend small quiet" }, SPLITS.map((name, i) => [element("span", { class: `key p${i}` }), `${name}  `]));

function plainTable(heads, rows, numbers = []) {
  const cell = (tag, content, i, more) => element(tag, { class: numbers.includes(i) ? "number" : null, ...more }, content);
  return element("table", { class: "plain" },
    element("thead", null, element("tr", null, heads.map((text, i) => cell("th", text, i, { scope: "col" })))),
    element("tbody", null, rows.map((row) => element("tr", null, row.map((content, i) => cell("td", content, i))))));
}

const FOLDED = 10;

// A table of which the first rows are shown, the others on demand.
function foldedTable(heads, rows, numbers) {
  const table = plainTable(heads, rows, numbers), rest = [...table.tBodies[0].rows].slice(FOLDED);
  if (rest.length < 3) return table;
  for (const row of rest) row.hidden = true;
  const button = element("button", { type: "button", class: "link more", onclick: () => { for (const row of rest) row.hidden = false; button.remove(); } }, `${plural(rest.length, "smaller row")}`);
  return element("div", null, table, button);
}

const foreign = (text, title = null) => named("span", { title }, text);
