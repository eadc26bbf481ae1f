// The head of the page: what was done, the best and the robust configuration, warnings, what to do next.

function showHead() {
  const live = study.reload ? element("span", { class: "badge live", id: "live" }, "unfinished: this page follows it") : "";
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
  const settings = element("dl", { class: "settings" }, one.settings.map(([name, text]) => element("div", null, named("dt", null, name), named("dd", null, text))));
  const rows = one.metrics.map(({ name, expected, measured }) => [named("span", null, name), element("b", null, expected), measured]);
  const trials = one.trials.length ? [" · ", plural(one.trials.length, "trial"), " ", trialLinks(one.trials)] : "";
  return card(title, id, settings, plainTable(["", "expected", "measured"], rows), element("p", { class: "sure" }, id === "best" ? one.sure : one.why, trials));
}

const trialLinks = (numbers) => numbers.slice(0, 12).map((number) => [element("button", { type: "button", class: "link number-link", onclick: () => point(number) }, String(number)), " "]);

function noticeCard() {
  if (!study.notices.length && !study.steps.length) return "";
  const list = study.notices.map((one) => element("li", { class: `notice is-${one.kind.replace(" ", "-")}` }, named("span", null, one.words),
    one.trials.length ? element("details", null, element("summary", null, plural(one.trials.length, "trial")), trialLinks(one.trials), one.trials.length > 12 ? "…" : "") : ""));
  return card("To know", "notices", list.length ? element("ul", { class: "notices" }, list) : "", study.steps.map(([command, words]) => element("p", { class: "step" }, named("code", null, command), " ", words)));
}
