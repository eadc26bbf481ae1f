// Starts the page.

function start() {
  showHeader(report.header);
  if (!report.rows.length) return showEmpty();
  showTable();
  showFilters();
  document.addEventListener("keydown", onKey);
  document.getElementById("scroll").addEventListener("click", onClick);
  addEventListener("hashchange", followLink);
  followLink();
  const first = order.find((entry) => !entry.element.hidden) ?? order[0];
  if (selected == null) select(first.index, { link: false });
  // Charts carry colours, not classes: they are drawn anew when the page turns dark or light, or to paper.
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", () => view.redraw());
  }
}

start();
