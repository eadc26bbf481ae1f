// Laws, clusters, patterns and call paths: one of them is shown. The programs of the last two are in the page only where these are.

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
