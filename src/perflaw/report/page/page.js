// Starts the page.

function start() {
  showHeader(report.header);
  setTheme(view.theme);
  if (!report.rows.length && !trend && !variance && !mine) return showEmpty();
  if (report.rows.length) startLaws();
  if (trend) startTrend();
  if (variance) startVariance();
  if (mine) startMine();
  showViews();
  addEventListener("hashchange", followLink);
  followLink();
  const first = order.find((entry) => !entry.element.hidden) ?? order[0];
  if (first && selected == null) select(first.index, { link: false });
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
  showOutcomes();
  document.addEventListener("keydown", onKey);
  document.getElementById("scroll").addEventListener("click", onClick);
}

start();
