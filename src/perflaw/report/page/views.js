// The application: its views, which one is shown, the address of what it shows, and the search through all of them.

// `key` names what is selected in a view: `#/component/app.lookup?axes=log`. `old` is the view's name in older links.
const VIEWS = [
  { name: "overview", label: "overview", data: report.overview, address: () => [], follow: () => {}, draw: drawOverview },
  { name: "components", one: "component", key: "component", label: "components", data: report.rows.length, old: "laws", address: lawsAddress, follow: followLaws, draw: drawLaws, help: () => help(report.rows[0].metric), ids: ["components", "detail"] },
  { name: "trends", one: "trend", key: "cluster", label: `clusters of ${report.trend?.noun}`, data: report.trend, old: "trend", address: trendAddress, follow: followTrend, draw: drawTrend, help: () => TREND_HELP, ids: ["trend"] },
  { name: "variance", key: "function", label: "variance", data: report.variance, old: "variance", address: varianceAddress, follow: followVariance, draw: drawVariance, help: () => VARIANCE_HELP, ids: ["variance"] },
  { name: "specifications", one: "specification", key: "function", label: "call paths", data: report.mine, old: "mine", address: mineAddress, follow: followMine, draw: drawMine, help: () => MINE_HELP, ids: ["mine"] },
  { name: "exploration", label: "exploration", data: report.exploration, address: () => [], follow: () => {}, draw: drawExploration, ids: ["exploration"] },
  { name: "profile", label: "profile", data: report.profile, address: () => [], follow: () => {}, draw: drawProfile, help: () => PROFILE_HELP, ids: ["profile"] },
  { name: "checks", label: "checks", data: report.checks || report.outcomes, address: () => [], follow: () => {}, draw: drawChecks, ids: ["checks"] },
];
const knownViews = VIEWS.filter((one) => one.data);
let current = null;

const viewNow = () => knownViews.find((one) => one.name === current);
const isShown = (name) => current === name;

// Shows a view and hides the others; what is in it is drawn by its `draw`.
function reveal({ name, help }) {
  current = name;
  for (const one of VIEWS) for (const id of one.ids ?? [one.name]) document.getElementById(id)?.classList.toggle("away", one.name !== name);
  const words = document.querySelector("#header .help");
  words.textContent = help ? help() : "";
  words.hidden = !help;
  for (const link of document.querySelectorAll("#views a")) link.toggleAttribute("aria-current", link.dataset.view === name);
  document.querySelector("#views [aria-current]")?.setAttribute("aria-current", "page");
}

// Goes to a view with what was last selected in it; the browser's Back returns.
function showView(name) {
  const one = knownViews.find((other) => other.name === name);
  if (!one) return;
  reveal(one);
  one.draw();
  history.pushState(null, "", `#${addressOf()}`);
  known = location.hash;
}

// Follows a link that was opened or typed: to its view, what is selected there, and the choices.
function followLink() {
  const parts = addressParts();
  const one = knownViews.find(({ name }) => name === parts.get("view")) ?? knownViews[0];
  if (["auto", "light", "dark"].includes(parts.get("theme"))) view.theme = parts.get("theme");
  showPressed("theme", view.theme);
  reveal(one);
  one.follow(parts);
  setTheme(view.theme);
  closeSearch();
}

function showPressed(choice, value) {
  for (const button of document.querySelectorAll(`[data-choice=${choice}] button`)) button.setAttribute("aria-pressed", button.dataset.value === value);
}

function drawExploration() {
  const box = document.getElementById("exploration");
  box.replaceChildren(element("p", { class: "recorded" }, named("b", null, report.exploration.title), ` · ${report.exploration.heading} · seed ${report.exploration.seed}`), element("div", { id: "study" }));
  startStudy(report.exploration, true);
}

const PROFILE_HELP = "Where the cost of the newest run went. Width is cost, callees lie below their callers; click or Enter opens a context, Escape goes back.";
let profileDrawn = false;

async function drawProfile() {
  if (profileDrawn) return;
  profileDrawn = true;
  startProfile(await inflate(report.profile), document.getElementById("profile"));
}

// The links to all views, and the search; nothing where there is one view.
function showViews() {
  if (knownViews.length > 1) {
    const link = ({ name, label }) => element("a", { href: `#/${name}`, "data-view": name, onclick: (event) => { if (plainClick(event)) { event.preventDefault(); showView(name); } } }, label);
    document.querySelector("#header .help").before(element("nav", { id: "views", "aria-label": "Views" }, knownViews.map(link)));
  }
  document.addEventListener("keydown", onViewKey);
}

const plainClick = (event) => !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button);

// 1 to 9 go to a view, s to the search.
function onViewKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  if (/^[1-9]$/.test(event.key) && knownViews.length > 1) showView(knownViews[Number(event.key) - 1]?.name);
  else if (event.key === "s" && document.getElementById("search")) { event.preventDefault(); document.getElementById("search").focus(); }
}

// The address that shows something: a link for every name on the page.
const linkTo = (name, key) => `#/${VIEWS.find((one) => one.name === name).one ?? name}/${encodeURIComponent(linkable(key))}`;

// The search looks for names in all views; it is made ready when it is first used.
const MOST_FOUND = 12;
let searched = null;

function searchField() {
  const input = element("input", { type: "search", id: "search", placeholder: "search all views  ( s )", spellcheck: "false", autocomplete: "off", "aria-label": "Search all views", oninput: (event) => showFound(event.target.value) });
  const box = element("div", { class: "search" }, input, element("ul", { id: "found", hidden: true, "aria-label": "Found" }));
  box.addEventListener("keydown", (event) => {
    const links = [...box.querySelectorAll("a")], here = links.indexOf(document.activeElement);
    if (event.key === "Escape") closeSearch();
    else if (event.key === "Enter" && event.target === input) { event.preventDefault(); links[0]?.click(); }
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") (links[here + (event.key === "ArrowDown" ? 1 : -1)] ?? (here < 0 ? null : input))?.focus();
    else return;
    event.stopPropagation();
    if (event.key.startsWith("Arrow")) event.preventDefault();
  });
  return box;
}

function closeSearch() {
  const list = document.getElementById("found");
  if (!list) return;
  list.hidden = true;
  document.getElementById("search").value = "";
  if (document.activeElement?.closest(".search")) document.activeElement.blur(); // keys are the view's again
}

function searchItems() {
  const items = [];
  const add = (name, keys) => { const one = VIEWS.find((other) => other.name === name); for (const key of new Set(keys)) items.push({ key, label: one.label, href: linkTo(name, key), lower: key.toLowerCase() }); };
  add("components", report.rows.map((row) => row.key));
  if (trend) add("trends", trend.clusters.map((one) => one.representative));
  if (variance) add("variance", variance.functions.map((one) => one.name));
  if (mine) add("specifications", mine.rows.map((row) => row.component));
  return items;
}

function showFound(text) {
  searched ??= searchItems();
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? searched.filter(({ lower }) => words.every((word) => lower.includes(word))) : [];
  const list = document.getElementById("found");
  list.hidden = !words.length;
  list.replaceChildren(...found.slice(0, MOST_FOUND).map(({ key, label, href }) => element("li", null, element("a", { href, onclick: closeSearch }, named("span", { class: "clip" }, key), element("span", { class: "quiet small" }, label)))),
    found.length > MOST_FOUND ? element("li", { class: "quiet small" }, `${(found.length - MOST_FOUND).toLocaleString("en")} more`) : found.length ? "" : element("li", { class: "quiet small" }, "nothing has this name"));
}
