// The call-path view: which function is looked at; keys and address.

const mining = { place: 0, filter: "" };
const mineScreens = new Map();
let mineAsking = 0;

const MINE_HELP = "Each row is a function: borders part its quick calls from its slow ones, and call paths on which it behaves alike form a group. "
  + "Select one (click, or ↑ ↓) to see which calls on the way decide how it behaves.";

function startMine() {
  document.addEventListener("keydown", onMineKey);
  const first = mine.rows.findIndex((row) => row.groups > 1);
  mining.place = Math.max(0, first >= 0 ? first : mine.rows.findIndex((row) => row.borders));
}

function drawMine() {
  if (!mineShown) return;
  const parts = mine.rows.length ? [mineList(), element("section", { id: "spec", "aria-label": "Selected function" })] : [element("p", { class: "reason" }, "No function was called often enough.")];
  document.getElementById("mine").replaceChildren(...(mine.merges ? [mergesCard(mine.merges)] : []), ...parts);
  if (!mine.rows.length) return;
  filterSpecs();
  showSpec();
}

function chooseSpec(place, focus = false) {
  mining.place = place;
  showSpec();
  if (focus) mineRows[place].element.focus({ preventScroll: true });
  rememberNow();
}

async function showSpec() {
  for (const entry of mineRows) {
    const chosen = entry.place === mining.place;
    entry.element.setAttribute("aria-selected", chosen);
    entry.element.tabIndex = chosen ? 0 : -1;
    if (chosen) entry.element.scrollIntoView({ block: "nearest" });
  }
  const turn = ++mineAsking, place = mining.place;
  if (!mineScreens.has(place)) mineScreens.set(place, await inflate(mine.screens[place]));
  if (turn !== mineAsking) return;
  document.getElementById("spec").replaceChildren(...mineScreen(mineScreens.get(place), mine.rows[place]));
  showTarget(document.querySelector(".calls-scroll"));
}

function onMineKey(event) {
  if (!mineShown || event.ctrlKey || event.altKey || event.metaKey || !mine.rows.length) return;
  if (event.key === "Escape" && event.target.id === "mine-text") { event.target.value = mining.filter = ""; filterSpecs(); return; }
  if (event.target.closest("input, select, textarea, summary")) return;
  if (event.key === "/") { event.preventDefault(); document.getElementById("mine-text").focus(); return; }
  const way = STEPS[event.key], rows = mineRows.filter((entry) => !entry.element.hidden);
  if (!way || !rows.length || (Math.abs(way) !== 1 && !event.target.closest("#specs"))) return;
  event.preventDefault();
  const here = rows.findIndex((entry) => entry.place === mining.place);
  chooseSpec(rows[Math.min(rows.length - 1, Math.max(0, here + way))].place, true);
}

// What the address says of this view; a link shows the same.
function mineAddress() {
  const parts = [["view", "mine"]];
  if (mine.rows.length) parts.push(["function", linkable(mine.rows[mining.place].name)]);
  if (mining.filter) parts.push(["filter", linkable(mining.filter)]);
  if (view.theme !== "auto") parts.push(["theme", view.theme]);
  return parts;
}

function followMine(parts) {
  if (["auto", "light", "dark"].includes(parts.get("theme"))) view.theme = parts.get("theme");
  mining.filter = (parts.get("filter") ?? "").toLowerCase();
  const place = mine.rows.findIndex((row) => linkable(row.name) === parts.get("function"));
  if (place >= 0) mining.place = place;
  for (const button of document.querySelectorAll("[data-choice=theme] button")) button.setAttribute("aria-pressed", button.dataset.value === view.theme);
  mineShown = false; // drawn once, below
  setTheme(view.theme);
  showView("mine");
}
