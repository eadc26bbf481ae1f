// The law with a slider for each knob: what any configuration would give, beside the best.

function lawCard() {
  const metric = metricOf(chosen.metric), law = metric?.law;
  if (!law) return "";
  const readable = laws.get(metric.name), doubt = law.verdict !== "law" ? named("p", { class: `reason is-${law.verdict}` }, `${law.verdict === "none" ? "no dependence" : law.verdict}: ${law.reason}`) : "";
  const facts = element("dl", null, law.facts.map(([name, value]) => [element("dt", null, name), named("dd", null, value)]));
  const others = law.alternatives.length ? element("details", null, element("summary", null, "not told apart from it"), element("ul", null, law.alternatives.map((text) => element("li", null, named("code", null, text))))) : "";
  return card(["Law of ", named("span", null, metric.name)], "law", doubt, element("div", { class: "expression" }, named("code", null, law.expression), copyButton(law.expression)), facts, others,
    readable && law.features.length ? [element("div", { class: "sliders" }, study.knobs.map((knob) => slider(knob, law))), element("p", { class: "answer", id: "answer", "aria-live": "polite" })] : "");
}

const usedBy = (knob, law) => law.features.some((name) => name === knob.name || (knob.categorical && name.startsWith(`${knob.name}=`)));
const startOf = (knob) => study.best?.values[knob.name] ?? knob.default ?? knob.levels[0]?.value;
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
  const place = document.getElementById("answer"), metric = metricOf(chosen.metric), law = laws.get(chosen.metric);
  if (!place || !law) return;
  const settings = Object.fromEntries(study.knobs.map((knob) => [knob.name, settingNow(knob)]));
  const features = featuresOf(settings), mean = meanAt(law, features), [low, high] = noiseAt(law, features);
  const best = study.best ? meanAt(law, featuresOf({ ...settings, ...study.best.values })) : NaN;
  const outside = Object.entries(metric.law.range).filter(([name, [from, to]]) => metric.law.features.includes(name) && (features[name] < from || features[name] > to)).map(([name]) => name);
  const beside = Number.isFinite(best) && best !== mean && mean > 0 ? ` · ${(mean / best * 100).toFixed(0)} % of what the law gives the best configuration` : "";
  place.replaceChildren(element("b", null, told(metric, mean)), ` (one trial: ${told(metric, low)} to ${told(metric, high)})`, beside, outside.length ? element("span", { class: "badge is-inconclusive" }, `beyond what was tried of ${outside.join(", ")}`) : "");
}
