// The head of a study's page: the best and the robust configuration, warnings, what matters, the law with its sliders, all trials.

function showHead() {
  const live = study.reload ? element("span", { class: "badge live", id: "live" }, "unfinished: this page reloads itself") : "";
  document.getElementById("header").replaceChildren(element("div", { class: "title" }, named("h1", null, study.title), live,
    choiceOf("Colours", [["auto", "auto"], ["light", "light"], ["dark", "dark"]], chosen.theme, (value) => { setTheme(value); draw(); }, "theme")),
    element("p", { class: "quiet" }, study.heading, ` · seed ${study.seed}`));
}

function resultCards() {
  const cards = [study.best ? choiceCard("Best", "best", study.best) : card("Best", "best", element("p", { class: "quiet" }, "No valid trial yet."))];
  if (study.robust) cards.push(choiceCard("Robust", "robust", study.robust));
  return element("div", { class: "choices" }, cards, noticeCard());
}

function choiceCard(title, id, one) {
  const settings = element("dl", { class: "settings" }, Object.entries(one.text.settings).map(([name, text]) => element("div", null, named("dt", null, name), named("dd", null, text))));
  const rows = Object.entries(one.text.expected).map(([name, expected]) => [named("span", null, name), element("b", null, expected), one.text.measured[name]]);
  const trials = one.trials.length ? [" · ", counted(one.trials.length, "trial"), " ", trialLinks(one.trials)] : "";
  return card(title, id, settings, plainTable(["", "expected", "measured"], rows), element("p", { class: "sure" }, id === "best" ? one.text.sure : one.why, trials));
}

const trialLinks = (numbers) => numbers.slice(0, 12).map((number) => [element("button", { type: "button", class: "link number-link", onclick: () => point(number) }, String(number)), " "]);

function noticeCard() {
  if (!study.warnings.length && !study.steps.length) return "";
  const list = study.warnings.map((one) => element("li", { class: `notice is-${one.kind.replace(" ", "-")}` }, named("span", null, one.words),
    one.trials.length ? element("details", null, element("summary", null, counted(one.trials.length, "trial")), trialLinks(one.trials), one.trials.length > 12 ? "…" : "") : ""));
  return card("To know", "notices", list.length ? element("ul", { class: "notices" }, list) : "", study.steps.map(([command, words]) => element("p", { class: "step" }, named("code", null, command), " ", words)));
}

function importanceCard() {
  const metric = metricOf(chosen.metric), one = metric?.importance;
  if (!one) return "";
  const title = ["What matters for ", named("span", null, metric.name)];
  if (one.reason) return card(title, "importance", named("p", { class: "reason" }, one.reason));
  const sure = one.shares.filter((share) => share.sure), rest = one.shares.filter((share) => !share.sure);
  const most = Math.max(...one.shares.map(({ high }) => high), 0.01);
  const words = [`share of its ${one.text.variance} over the whole space, with ${CONFIDENCE.words} intervals`, one.exact ? "every combination of levels was tried" : "interpolated between trials", one.text.noise].filter(Boolean).join(" · ");
  const others = rest.length ? element("p", { class: "small quiet" }, "Not established: ", rest.slice(0, 8).map(({ text }) => text.knobs).join(", "), rest.length > 8 ? ", …" : "",
    ` (each at most ${Math.max(0.1, ...rest.map(({ high }) => high * 100)).toFixed(1)} %)`) : "";
  return card(title, "importance", element("p", { class: "small quiet" }, words), element("div", { class: "shares", role: "list" }, sure.map((share) => shareRow(share, most))), others);
}

function shareRow(share, most) {
  const bar = element("span", { class: "share-bar", "aria-hidden": "true" }), fill = element("span", { class: "share-fill" }), whisker = element("span", { class: "share-whisker" });
  fill.style.width = asPercent(share.share / most);
  whisker.style.left = asPercent(share.low / most);
  whisker.style.width = asPercent((share.high - share.low) / most);
  bar.append(fill, whisker);
  return element("div", { class: "share-row", role: "listitem" }, named("span", { class: "share-name" }, share.text.knobs), bar, element("span", { class: "number" }, share.text.share));
}

// The choice of the metric that the page shows, where there are several.
function metricChoice() {
  if (study.metrics.length < 2) return "";
  return element("p", { class: "metric-choice" }, choiceOf("Metric", study.metrics.map(({ name }) => [name, name]), chosen.metric, (name) => { chosen.metric = name; keep(); draw(); }, "metric"));
}

function lawCard() {
  const metric = metricOf(chosen.metric), law = metric?.law;
  if (!law) return "";
  const readable = laws.get(metric.name), doubt = law.verdict !== "law" ? named("p", { class: `reason is-${law.verdict}` }, `${law.verdict === "none" ? "no dependence" : law.verdict}: ${law.reason}`) : "";
  const facts = element("dl", null, law.facts.map(([name, value]) => [element("dt", null, name), named("dd", null, value)]));
  const others = law.alternatives.length ? element("details", null, element("summary", null, "laws that fit equally well"), element("ul", null, law.alternatives.map(({ expression }) => element("li", null, named("code", null, expression))))) : "";
  return card(["Law of ", named("span", null, metric.name)], "law", doubt, element("div", { class: "expression" }, named("code", null, law.expression), copyButton(law.expression)), facts, others,
    readable && law.features.length ? [element("div", { class: "sliders" }, study.knobs.map((knob) => slider(knob, law))), element("p", { class: "answer", id: "study-answer", "aria-live": "polite" })] : "");
}

const usedBy = (knob, law) => law.features.some((name) => name === knob.name || (knob.categorical && name.startsWith(`${knob.name}=`)));
const startOf = (knob) => study.best?.configuration[knob.name] ?? knob.default ?? knob.levels[0]?.value;
const settingNow = (knob) => (knob.levels.some(({ value }) => value === chosen.at[knob.name]) ? chosen.at[knob.name] : startOf(knob));

function slider(knob, law) {
  if (!usedBy(knob, law) || knob.levels.length < 2) return "";
  const at = Math.max(0, knob.levels.findIndex(({ value }) => value === settingNow(knob)));
  const set = (value) => { chosen.at[knob.name] = value; keep(); answer(); };
  if (!knob.ordered) return element("label", null, named("span", { class: "slider-name" }, knob.name), choiceOf(knob.name, knob.levels.map(({ value, text }) => [value, text]), settingNow(knob), set));
  const shown = element("output", null, knob.levels[at].text);
  const moved = (event) => { const level = knob.levels[Number(event.target.value)]; shown.textContent = level.text; set(level.value); };
  return element("label", null, named("span", { class: "slider-name" }, knob.name), element("input", { type: "range", min: 0, max: knob.levels.length - 1, step: 1, value: at, "data-knob": knob.name, "aria-label": knob.name, oninput: moved }), shown);
}

function answer() {
  const place = document.getElementById("study-answer"), metric = metricOf(chosen.metric), law = laws.get(chosen.metric);
  if (!place || !law) return;
  const settings = Object.fromEntries(study.knobs.map((knob) => [knob.name, settingNow(knob)]));
  const features = featuresOf(settings), mean = meanAt(law, features), [low, high] = noiseAt(law, features);
  const best = study.best ? meanAt(law, featuresOf({ ...settings, ...study.best.configuration })) : NaN;
  const outside = Object.entries(metric.law.range).filter(([name, [from, to]]) => metric.law.features.includes(name) && (features[name] < from || features[name] > to)).map(([name]) => name);
  const beside = Number.isFinite(best) && best !== mean && mean > 0 ? ` · ${(mean / best * 100).toFixed(0)} % of what the law gives the best configuration` : "";
  place.replaceChildren(element("b", null, valueText(metric, mean)), ` (one trial: ${valueText(metric, low)} to ${valueText(metric, high)})`, beside, outside.length ? element("span", { class: "badge is-inconclusive" }, `beyond what was tried of ${outside.join(", ")}`) : "");
}

const columnsOf = () => [
  { name: "number", title: "trial", number: true, value: (one) => one.number, text: (one) => String(one.number) },
  { name: "state", title: "", value: (one) => one.state, text: (one) => element("span", { class: `badge state-${one.state.replace(" ", "-")}` }, one.state) },
  ...study.metrics.map((metric) => ({ name: `metric ${metric.name}`, title: metric.name, number: true, value: (one) => one.metrics[metric.name] ?? null, text: (one) => one.text.metrics[metric.name] })),
  ...study.knobs.map((knob) => ({ name: `knob ${knob.name}`, title: knob.name, number: knob.ordered, value: (one) => one.configuration[knob.name] ?? null, text: (one) => named("span", null, one.text.settings[knob.name] ?? "—") })),
  { name: "switches", title: "switches/s", number: true, value: (one) => one.conditions.voluntary, text: (one) => (one.state === "planned" ? "—" : quantity(one.conditions.voluntary, "")) },
  { name: "seconds", title: "took", number: true, value: (one) => one.seconds, text: (one) => (one.seconds ? quantity(one.seconds * 1e9, "ns") : "—") },
  { name: "said", title: "reason", value: (one) => one.text.reasons || one.why, text: (one) => [one.text.reasons ? named("b", null, one.text.reasons) : "", one.text.reasons && one.why ? " · " : "", named("span", { class: "quiet" }, one.why)] },
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
  document.getElementById("trials-shown").textContent = wanted ? `${shown.length} of ${study.trials.length}` : counted(study.trials.length, "trial");
}

const textOf = (one) => [one.number, one.state, ...Object.entries(one.text.settings).map(([name, text]) => `${name}=${text}`), one.text.reasons, one.why].join(" ").toLowerCase();

// Numbers before texts; rows without a value last.
function compared(a, b) {
  if (a == null || b == null) return (a == null) - (b == null);
  return typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b;
}
