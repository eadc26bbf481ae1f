// The patterns as a list, ranked by the variance impact of their roots (VIM).

const MOST_LISTED = 50;
let variancePatterns = [];

function patternList() {
  const heads = ["", "function", "impact (VIM)", "CoV"];
  const box = element("div", { id: "patterns", role: "listbox", "aria-label": "Patterns, by their variance impact" });
  variancePatterns = metricNow().patterns.map((pattern, place) => ({ pattern, place, element: patternRow(pattern, place) }));
  box.append(...variancePatterns.map((entry) => entry.element));
  const input = element("input", { id: "variance-text", type: "search", placeholder: "function  ( / )", "aria-label": "Show patterns with a function whose name contains", value: studying.filter });
  input.addEventListener("input", () => { studying.filter = input.value.toLowerCase(); filterPatterns(); remember(); });
  return element("div", { class: "pattern-list" }, element("div", { class: "pattern-bar" }, input, element("span", { id: "patterns-shown" })),
    element("div", { class: "pattern-heads small quiet" }, heads.map((text) => element("span", null, text))), box);
}

function patternRow(pattern, place) {
  const [root] = pattern.nodes, { name } = functionOf(root.f);
  const more = pattern.nodes.length > 1 ? `${plural(pattern.nodes.length, "node")} · ` : "";
  const from = pattern.sources.length ? `${more}${pattern.sources[0]}` : `${more}${root.kind}`;
  return element("div", { class: "pattern", role: "option", "aria-selected": "false", "data-pattern": String(place), tabindex: -1, title: [name, ...pattern.sources].join("\n"), onclick: () => choosePattern(place, true) },
    element("span", { class: "rank" }, String(place + 1)),
    element("span", { class: "what" }, named("span", { class: "clip name" }, name), named("span", { class: "clip small quiet" }, from)),
    element("span", { class: "impact" }, bar(pattern.part ?? 0), element("span", { class: "small" }, root.vimText)),
    element("span", { class: "number" }, root.cov, root.cause === "interference" ? element("span", { class: "badge cause-interference", title: "interference" }, "off CPU") : ""));
}

// The top ones, the selected one, and what is searched for.
function filterPatterns() {
  let shown = 0;
  for (const { pattern, place, element: row } of variancePatterns) {
    pattern.searched ??= pattern.nodes.map((node) => functionOf(node.f).name).join("\n").toLowerCase();
    const listed = studying.filter ? pattern.searched.includes(studying.filter) : studying.all || place < MOST_LISTED || row.ariaSelected === "true";
    row.hidden = !listed;
    shown += listed;
  }
  const all = variancePatterns.length;
  const button = element("button", { type: "button", class: "link", onclick: showAllPatterns }, "show all");
  document.getElementById("patterns-shown").replaceChildren(shown === all ? plural(all, "pattern") : `${shown} of ${all}`, shown === all ? "" : button);
}

function showAllPatterns() {
  Object.assign(studying, { all: true, filter: "" });
  document.getElementById("variance-text").value = "";
  filterPatterns();
  remember();
}
