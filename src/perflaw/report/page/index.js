// The index of a server's experiments: each with what it holds, what is going on in it, and its latest check.

const INDEX_MS = 1000;
const shownRows = new Map();
let shownChecks = null;

const OUTCOME_CLASSES = { violated: "violated", inconclusive: "inconclusive", holds: "holds" };

function setTheme(theme) {
  const dark = theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

async function askIndex() {
  if (document.hidden) return;
  const late = document.getElementById("late");
  try {
    const answer = await fetch("/state", { cache: "no-cache" });
    if (!answer.ok) throw new Error(answer.status);
    showIndex(await answer.json());
    late.hidden = true;
  } catch (error) {
    late.hidden = false;
  }
}

function showIndex({ folder, experiments, checks }) {
  document.getElementById("folder").textContent = folder;
  const body = document.querySelector("#experiments tbody");
  document.getElementById("none").hidden = experiments.length > 0;
  document.querySelector("#experiments table").hidden = !experiments.length;
  const known = new Set(experiments.map(({ name }) => name));
  for (const [name, { row }] of shownRows) if (!known.has(name)) { row.remove(); shownRows.delete(name); }
  experiments.forEach((one, place) => {
    const text = JSON.stringify(one), before = shownRows.get(one.name);
    let row = before?.row;
    if (before?.text !== text) { // only what changed is drawn
      row = experimentRow(one);
      before ? before.row.replaceWith(row) : body.append(row);
      shownRows.set(one.name, { text, row });
    }
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] ?? null);
  });
  showChecks(checks);
}

const linkOf = (name) => `/experiments/${encodeURIComponent(name)}`;

function experimentRow(one) {
  return element("tr", { "data-experiment": one.name },
    element("td", null, element("a", { href: linkOf(one.name), class: "name" }, named("span", null, one.name))),
    named("td", null, one.target),
    element("td", null, one.holds),
    element("td", { class: "now" }, one.now),
    element("td", null, one.changed ? new Date(one.changed * 1000).toLocaleString("sv") : ""),
    element("td", null, one.check),
    element("td", { class: one.error ? "error" : "quiet" }, one.error || one.report));
}

function showChecks(checks) {
  const text = JSON.stringify(checks);
  if (text === shownChecks) return;
  shownChecks = text;
  const rows = checks.map((one) => [one.when, element("code", null, one.commit || "—"), element("a", { href: `${linkOf(one.experiment)}#/checks` }, one.experiment), one.laws,
    element("span", { class: `badge is-${one.counts.violated ? "violated" : one.counts.holds ? "holds" : "inconclusive"}` }, one.text), one.violated.join(", ")]);
  const box = element("div", { class: "wide-scroll", tabindex: 0, role: "region", "aria-label": "Checks by commit" }, plainTable(["when", "commit", "experiment", "laws", "verdicts", "violated"], rows));
  document.getElementById("checks").replaceChildren(...(checks.length ? [element("h2", null, "Checks over commits"), box] : []));
}

function startIndex() {
  document.getElementById("header").append(
    element("div", { class: "title" }, element("h1", null, "perflaw"), element("span", { class: "quiet" }, "experiments in ", element("code", { id: "folder" })),
      choiceOf("Colours", [["auto", "auto"], ["light", "light"], ["dark", "dark"]], "auto", setTheme, "theme")));
  const heads = ["experiment", "program", "holds", "now", "changed", "latest check", "report"];
  document.getElementById("experiments").append(
    element("table", { class: "plain", hidden: true }, element("thead", null, element("tr", null, heads.map((text) => element("th", { scope: "col" }, text)))), element("tbody", null)),
    element("p", { id: "none", hidden: true }, "Nothing is recorded here yet: ", element("code", null, "perflaw record -- python app.py")));
  setTheme("auto");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme("auto"));
  setInterval(askIndex, INDEX_MS);
  document.addEventListener("visibilitychange", askIndex);
  askIndex();
}

startIndex();
