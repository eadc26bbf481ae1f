// The head of the page: what was recorded, how to read the page, and the choice between its views.

const VERDICTS = { law: "law", inconclusive: "inconclusive", none: "constant" };

function showHeader(header) {
  document.getElementById("header").append(
    element("div", { class: "title" },
      named("h1", null, header.target),
      header.experiment ? element("span", { class: "quiet" }, "experiment ", named("b", null, header.experiment), ` · ${header.created}`) : "",
      choiceOf("Colours", [["auto", "auto"], ["light", "light"], ["dark", "dark"]], view.theme, (value) => { setTheme(value); remember(); }, "theme")),
    header.command ? named("code", { class: "command" }, header.command) : "",
    header.runs.length ? element("p", { class: "recorded" }, recorded(header)) : "",
    header.runs.length ? runTable(header.runs) : "",
    report.rows.length ? element("p", { class: "help" }, help(report.rows[0].metric)) : trend || variance || mine ? element("p", { class: "help" }, trend ? TREND_HELP : variance ? VARIANCE_HELP : MINE_HELP) : "");
}

const TREND_HELP = "Each row is a cluster: places of the program whose counts vary together over the runs, and the law that their sum follows. "
  + `Select one (click, or ↑ ↓) for its plots and its lines (n and p step through them); brackets hold ${CONFIDENCE.words} intervals.`;

const help = (metric) => `Each row is a function: the share of the recorded ${metric} spent in it, and the law its ${metric} follows. `
  + `Select one (click, or ↑ ↓) to see the evidence; brackets hold ${CONFIDENCE.words} intervals.`;

function recorded(header) {
  const incomplete = header.runs.filter((run) => !run.complete).length;
  const parts = [
    counted(header.runs.length, "run"),
    incomplete ? `${incomplete} incomplete` : "",
    header.components ? counted(header.components, "function") : "",
    header.components ? `${header.calls} ${header.calls === "1" ? "call" : "calls"}` : "",
    ...header.notes,
  ];
  return parts.filter(Boolean).join(" · ");
}

function runTable(runs) {
  const body = runs.map((run) => element("tr", null,
    named("td", null, run.id), named("td", null, run.features),
    element("td", { class: "number" }, run.wall), element("td", { class: "number" }, run.calls),
    element("td", null, run.complete ? "complete" : "incomplete")));
  const heads = ["run", "workload", "wall time", "calls", ""];
  const head = element("tr", null, heads.map((text, i) =>
    element("th", { scope: "col", class: i === 2 || i === 3 ? "number" : null }, text)));
  return element("details", { class: "runs" },
    element("summary", null, "list the runs"),
    element("div", { class: "runs-scroll" },
      element("table", { class: "plain" }, element("thead", null, head), element("tbody", null, body))));
}

function showEmpty() {
  const step = (command, words) => element("li", null, element("code", null, command), ` ${words}`);
  document.getElementById("overview").replaceChildren(element("div", { class: "empty" },
    element("h2", null, "No function has a law yet"),
    element("p", null, "The experiment holds no calls that a law could be learnt from. Usually one of these helps:"),
    element("ul", null,
      step("perflaw record --vary n=100,1000,10000 --repeat 3 -- app.py {n}", "records several sizes, each several times"),
      step("perflaw runs", "shows what was recorded, and whether it is complete"),
      step("perflaw doctor", "says what this machine can measure, and why not"))));
  document.getElementById("detail").remove();
}

const variance = report.variance;
const mine = report.mine;
let varianceShown = false, mineShown = false;

const varianceAsked = (parts) => Boolean(variance) && (parts.get("view") === "variance" || (!report.rows.length && !trend));
const mineAsked = (parts) => Boolean(mine) && (parts.get("view") === "mine" || (!report.rows.length && !trend && !variance));

function showViews() {
  const views = [["laws", "laws of functions", report.rows.length], ["trend", `clusters of ${trend?.noun}`, trend], ["variance", "variance", variance], ["mine", "call paths", mine]];
  const known = views.filter((one) => one[2]).map(([name, words]) => [name, words]);
  if (known.length > 1) document.getElementById("header").append(choiceOf("View", known, known[0][0], (name) => { showView(name); rememberNow(); }, "view"));
}

const viewShown = () => (mineShown ? "mine" : varianceShown ? "variance" : trendShown ? "trend" : "laws");

function showView(name) {
  trendShown = name === "trend";
  varianceShown = name === "variance";
  mineShown = name === "mine";
  document.getElementById("trend").hidden = !trendShown;
  document.getElementById("variance").hidden = !varianceShown;
  document.getElementById("mine").hidden = !mineShown;
  for (const id of ["overview", "detail", "outcomes"]) document.getElementById(id)?.classList.toggle("away", name !== "laws");
  const words = document.querySelector("#header .help");
  if (words) words.textContent = trendShown ? TREND_HELP : varianceShown ? VARIANCE_HELP : mineShown ? MINE_HELP : help(report.rows[0].metric);
  for (const button of document.querySelectorAll("[data-choice=view] button")) button.setAttribute("aria-pressed", button.dataset.value === name);
  if (trendShown) drawTrend();
  else if (varianceShown) drawVariance();
  else if (mineShown) drawMine();
  else view.redraw();
}
