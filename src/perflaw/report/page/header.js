// The head of the page: what was recorded, how to read the page, and the choice between its views.

const VERDICTS = { law: "law", inconclusive: "inconclusive", none: "constant" };

function showHeader(header) {
  document.getElementById("header").append(
    element("div", { class: "title" },
      named("h1", null, header.target),
      header.experiment ? element("span", { class: "quiet" }, "experiment ", named("b", null, header.experiment), ` · ${header.created}`) : "",
      knownViews.length > 1 || report.rows.length > LONG ? searchField() : "",
      choiceOf("Colours", [["auto", "auto"], ["light", "light"], ["dark", "dark"]], view.theme, (value) => { setTheme(value); remember(); }, "theme")),
    header.command ? named("code", { class: "command" }, header.command) : "",
    header.runs.length ? element("p", { class: "recorded" }, recorded(header)) : "",
    header.runs.length ? runTable(header.runs) : "",
    element("p", { class: "help" }));
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
  const heads = ["run", "workload", "wall time", "calls", "end"];
  const head = element("tr", null, heads.map((text, i) =>
    element("th", { scope: "col", class: i === 2 || i === 3 ? "number" : null }, text)));
  return element("details", { class: "runs" },
    element("summary", null, "list the runs"),
    element("div", { class: "runs-scroll" },
      element("table", { class: "plain" }, element("thead", null, head), element("tbody", null, body))));
}

function showEmpty() {
  const step = (command, words) => element("li", null, element("code", null, command), ` ${words}`);
  document.getElementById("components").replaceChildren(element("div", { class: "empty" },
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
