// Starts a study's page, and looks for a newer one while the study is unfinished; within the report it is drawn alone.

function draw() {
  const here = { scroll: scrollY, table: document.getElementById("trials-scroll")?.scrollTop ?? chosen.table };
  document.getElementById("study").replaceChildren(resultCards(), metricChoice(), element("div", { class: "panels" },
    element("div", null, importanceCard(), lawCard()), element("div", null, mapsCard(), progressCard(), frontCard())), trialsCard());
  fillTrials();
  answer();
  document.getElementById("trials-scroll").scrollTop = here.table;
  scrollTo(0, here.scroll);
}

// The page does not reload while a key or a button is down, a text is selected, or an input is used.
let held = false, touched = 0;
const busy = () => held || Date.now() - touched < 1500 || !getSelection().isCollapsed || Boolean(document.activeElement?.closest("input, select"));

function follow() {
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, () => { held = true; });
  for (const name of ["pointerup", "keyup", "pointercancel", "blur"]) addEventListener(name, () => { held = false; touched = Date.now(); });
  addEventListener("wheel", () => { touched = Date.now(); }, { passive: true });
  setInterval(() => {
    if (busy() || document.hidden) return;
    keep();
    location.reload();
  }, study.reload * 1000);
}

function start() {
  const { scroll, table } = chosen;
  history.scrollRestoration = "manual";
  setTheme(chosen.theme);
  showHead();
  draw();
  document.getElementById("trials-scroll").scrollTop = table;
  scrollTo(0, scroll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(chosen.theme));
  addEventListener("pagehide", keep);
  if (study.reload) follow();
}

if (embedded) draw();
else start();
