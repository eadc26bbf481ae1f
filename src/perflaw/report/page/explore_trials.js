// All trials with their reasons; columns sort, a text filters.

const columnsOf = () => [
  { name: "number", title: "trial", number: true, value: (one) => one.number, text: (one) => String(one.number) },
  { name: "state", title: "", value: (one) => one.state, text: (one) => element("span", { class: `badge state-${one.state.replace(" ", "-")}` }, one.state) },
  ...study.metrics.map((metric) => ({ name: `metric ${metric.name}`, title: metric.name, number: true, value: (one) => one.metrics[metric.name] ?? null, text: (one) => one.texts[metric.name] })),
  ...study.knobs.map((knob) => ({ name: `knob ${knob.name}`, title: knob.name, number: knob.ordered, value: (one) => one.values[knob.name] ?? null, text: (one) => named("span", null, one.settings[knob.name] ?? "—") })),
  { name: "switches", title: "switches/s", number: true, value: (one) => one.switches, text: (one) => (one.state === "planned" ? "—" : quantity(one.switches, "")) },
  { name: "seconds", title: "took", number: true, value: (one) => one.seconds, text: (one) => (one.seconds ? quantity(one.seconds * 1e9, "ns") : "—") },
  { name: "said", title: "reason", value: (one) => one.said || one.why, text: (one) => [one.said ? named("b", null, one.said) : "", one.said && one.why ? " · " : "", named("span", { class: "quiet" }, one.why)] },
];

function trialsCard() {
  const input = element("input", { type: "search", id: "trials-text", placeholder: "filter trials", "aria-label": "Filter trials", value: chosen.filter, oninput: (event) => { chosen.filter = event.target.value; keep(); fillTrials(); } });
  return card("Trials", "trials", element("p", { class: "map-bar" }, input, element("span", { id: "trials-shown", class: "quiet" })), element("div", { id: "trials-scroll", onscroll: keep }, element("table", { class: "plain trials" })));
}

function fillTrials() {
  const columns = columnsOf(), by = columns.find(({ name }) => name === chosen.sort) ?? columns[0], wanted = chosen.filter.trim().toLowerCase();
  const shown = study.trials.filter((one) => !wanted || textOf(one).includes(wanted)).sort((a, b) => compared(by.value(a), by.value(b)) * (chosen.down ? -1 : 1) || a.number - b.number);
  const heads = columns.map((column) => element("th", { scope: "col", class: column.number ? "number" : null, "aria-sort": column === by ? (chosen.down ? "descending" : "ascending") : "none" },
    element("button", { type: "button", onclick: () => { chosen.down = chosen.sort === column.name && !chosen.down; chosen.sort = column.name; keep(); fillTrials(); } }, column.title || "state")));
  const rows = shown.map((one) => element("tr", { "data-trial": one.number, class: study.best?.trials.includes(one.number) ? "of-best" : null }, columns.map((column) => element("td", { class: column.number ? "number" : column.name === "said" ? "said" : null }, column.text(one)))));
  document.querySelector("#trials table").replaceChildren(element("thead", null, element("tr", null, heads)), element("tbody", null, rows));
  document.getElementById("trials-shown").textContent = wanted ? `${shown.length} of ${study.trials.length}` : plural(study.trials.length, "trial");
}

const textOf = (one) => [one.number, one.state, ...Object.entries(one.settings).map(([name, text]) => `${name}=${text}`), one.said, one.why].join(" ").toLowerCase();

// Numbers before texts, nothing last in either direction's start.
function compared(a, b) {
  if (a == null || b == null) return (a == null) - (b == null);
  return typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b;
}
