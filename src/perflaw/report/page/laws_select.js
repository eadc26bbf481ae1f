// Which component is selected: by click, by key, by link.

let selected = null;

function select(index, { focus = false, link = true } = {}) {
  const other = selected !== index;
  // Choices for the charts of one component do not apply to another component's features.
  if (other && selected != null && link) Object.assign(view, { feature: null, held: {}, at: {} });
  selected = index;
  showRows();
  const row = order.find((entry) => entry.index === index).element;
  if (row) {
    if (focus) row.focus({ preventScroll: true });
    rowIntoView(row, document.getElementById("scroll"));
  }
  if (!other) return;
  showDetail(index);
  if (link) rememberNow();
}

const isHidden = (index) => order.find((entry) => entry.index === index).hidden;

// Scrolls only the table; the page stays where the person reads. The sticky heading covers the table's top.
function rowIntoView(row, scroll) {
  const top = row.offsetTop - scroll.querySelector("thead").offsetHeight;
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  const bottom = row.offsetTop + row.offsetHeight - scroll.clientHeight;
  if (bottom > scroll.scrollTop) scroll.scrollTop = bottom;
}

// An undecodable name holds surrogates, which an address cannot hold.
const linkable = (key) => key.replace(/\p{Surrogate}/gu, "\ufffd");

function linked(parts) {
  const key = parts.get("component");
  const index = key == null ? -1 : report.rows.findIndex((row) => linkable(row.key) === key);
  return index < 0 ? null : index;
}

function followLaws(parts) {
  Object.assign(view, { feature: null, held: {}, at: {} });
  recall(parts);
  showChosen();
  applyFilters();
  const index = linked(parts) ?? selected ?? (order.find((entry) => !entry.hidden) ?? order[0]).index;
  if (linked(parts) != null && isHidden(index)) clearFilters();
  if (selected === index) showDetail(index);
  select(index, { link: false });
}

// Draws what has colours; the first row is selected when nothing was yet.
function drawLaws() {
  if (selected == null) followLaws(new Map());
  else view.redraw();
}

const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

// Keys move through the rows shown, except in fields that use the keys themselves.
function onKey(event) {
  if (!isShown("components")) return;
  const step = STEPS[event.key];
  const held = event.ctrlKey || event.altKey || event.metaKey;
  if (event.key === "Escape" && event.target.id === "text") return clearText();
  if (held || event.target.closest("input, select, textarea, summary, .svg-chart")) return;
  if (event.key === "/") return toFilter(event);
  if (!step) return;
  const inTable = event.target.closest("#laws");
  if (!inTable && Math.abs(step) !== 1) return;
  const rows = listed;
  if (!rows.length) return;
  event.preventDefault();
  const here = rows.findIndex((entry) => entry.index === selected);
  const next = Math.min(rows.length - 1, Math.max(0, here + step));
  select(rows[next].index, { focus: true });
}

function toFilter(event) {
  event.preventDefault();
  document.getElementById("text").focus();
}

function onClick(event) {
  const row = event.target.closest("#laws tbody tr");
  if (row && !String(getSelection())) select(Number(row.dataset.index));
}
