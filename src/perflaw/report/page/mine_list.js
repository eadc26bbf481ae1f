// The functions that were mined, as a list.

let mineRows = [];

function mineList() {
  const box = element("div", { id: "specs", role: "listbox", "aria-label": "Specifications" });
  mineRows = mine.rows.map((row, place) => ({ row, place, element: mineRow(row, place) }));
  box.append(...mineRows.map((entry) => entry.element));
  const input = element("input", { id: "mine-text", type: "search", placeholder: "function  ( / )", "aria-label": "Show functions whose name contains", value: mining.filter });
  input.addEventListener("input", () => { mining.filter = input.value.toLowerCase(); filterSpecs(); remember(); });
  return element("div", { class: "pattern-list" }, element("div", { class: "pattern-bar" }, input, element("span", { id: "specs-shown" })),
    element("div", { class: "pattern-heads spec-heads small quiet" }, ["share", "function", "calls", "borders", "groups", "edges", "stable"].map((text) => element("span", null, text))), box);
}

function mineRow(row, place) {
  return element("div", { class: "pattern spec", role: "option", "aria-selected": "false", "data-spec": String(place), tabindex: -1, title: row.name, onclick: () => chooseSpec(place, true) },
    element("span", { class: "number" }, row.shareText), named("span", { class: "clip name" }, row.name), ...[row.calls, row.borders, row.groups, row.atoms].map((value) => element("span", { class: "number" }, String(value))),
    element("span", { class: "number" }, row.stable ? "yes" : "no"));
}

function filterSpecs() {
  let shown = 0;
  for (const { row, element: line } of mineRows) {
    line.hidden = !row.name.toLowerCase().includes(mining.filter);
    shown += !line.hidden;
  }
  document.getElementById("specs-shown").replaceChildren(shown === mineRows.length ? plural(shown, "function") : `${shown} of ${mineRows.length}`);
}
