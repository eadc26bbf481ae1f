// Starts the page.

function start() {
  showHeader(report.header);
  setTheme(view.theme);
  if (!knownViews.length) return showEmpty();
  if (report.rows.length) startLaws();
  showOutcomes();
  if (trend) startTrend();
  if (variance) startVariance();
  if (mine) startMine();
  showViews();
  addEventListener("hashchange", followLink);
  followLink();
  // Charts carry colours, not classes: they are drawn anew when the page turns dark or light, or to paper.
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", () => setTheme(view.theme));
  }
}

function startLaws() {
  markOutcomes();
  showTable();
  if (report.program) showWhole(report.program);
  showFilters();
  document.addEventListener("keydown", onKey);
  document.getElementById("scroll").addEventListener("click", onClick);
}

start();
