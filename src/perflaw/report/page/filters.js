// Which rows are shown: by text, by verdict, by share.

// `usual` is the share that the page itself starts with.
const filter = { text: "", verdict: "all", check: "all", share: 0, usual: 0 };
// Lists longer than this start without their tail of small functions.
const LONG = 60;

function showFilters() {
  if (report.rows.length > LONG) filter.share = filter.usual = 0.001;
  const input = (name, change) => (event) => { filter[name] = change(event.target.value); applyFilters(); remember(); };
  const choose = (name) => (value) => { filter[name] = value; applyFilters(); remember(); };
  const form = document.getElementById("filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.append(
    element("input", { type: "search", id: "text", placeholder: "filter: function, file, law", spellcheck: "false",
      "aria-label": "Filter by function, file or law", oninput: input("text", (value) => value.toLowerCase().trim()) }),
    choiceOf("Verdict", verdictChoices(), filter.verdict, choose("verdict"), "verdict"),
    report.outcomes ? choiceOf(report.outcomes.verb, outcomeChoices(), filter.check, choose("check"), "check") : "",
    element("label", null, "hide below ",
      element("input", { type: "number", id: "share", min: 0, max: 100, step: "any", value: filter.share * 100,
        oninput: input("share", (value) => Number(value) / 100 || 0) }), " % share"),
    element("output", { id: "shown" }));
  applyFilters();
}

function verdictChoices() {
  const counts = report.header.verdicts;
  const kinds = Object.entries(VERDICTS).map(([verdict, words]) => {
    const noun = verdict === "law" && counts.law !== 1 ? "laws" : words;
    return [verdict, `${counts[verdict].toLocaleString("en")} ${noun}`, counts[verdict] === 0];
  });
  return [["all", `all ${report.rows.length.toLocaleString("en")}`], ...kinds];
}

function applyFilters() {
  let shown = 0;
  for (const { row, element: shownRow } of order) {
    shownRow.hidden = !passes(row);
    shown += !shownRow.hidden;
  }
  const all = report.rows.length;
  const words = shown === all ? "" : shown ? `${shown.toLocaleString("en")} of ${all.toLocaleString("en")} shown` : "none shown";
  document.getElementById("shown").replaceChildren(words, shown === all ? "" : showAllButton());
}

function passes(row) {
  if (filter.verdict !== "all" && row.verdict !== filter.verdict) return false;
  if (filter.check !== "all" && row.outcome !== filter.check) return false;
  // What is violated is never too small to be shown.
  if (filter.share > 0 && row.share < filter.share && row.outcome !== "violated") return false;
  row.searched ??= [row.name, row.place, row.law, row.grows, ...row.parameters].join("\n").toLowerCase();
  return row.searched.includes(filter.text);
}

function showAllButton() {
  return element("button", { type: "button", class: "link", onclick: clearFilters }, "show all");
}

function clearFilters() {
  Object.assign(filter, { text: "", verdict: "all", check: "all", share: 0 });
  showChosen();
  applyFilters();
  remember();
}

function clearText() {
  filter.text = document.getElementById("text").value = "";
  applyFilters();
  remember();
}

// The fields say what the filter is, wherever that came from.
function showChosen() {
  document.getElementById("text").value = filter.text;
  document.getElementById("share").value = filter.share * 100;
  for (const [name, value] of Object.entries({ verdict: filter.verdict, check: filter.check, theme: view.theme })) {
    for (const button of document.querySelectorAll(`[data-choice=${name}] button`)) {
      button.setAttribute("aria-pressed", button.dataset.value === value);
    }
  }
}
