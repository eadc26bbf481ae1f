// What changed since other recordings: patterns that appeared, went, or get their variance from elsewhere.

const SINCE = { appeared: "now varies highly", went: "no longer does", changed: "varies for other reasons, or by another amount" };

function sincePanel({ since }) {
  if (!since) return "";
  const rows = since.rows.map((row) => [sinceName(row), element("span", { class: `badge since-${row.what}`, title: SINCE[row.what] }, row.what), row.old, row.new,
    element("ul", { class: "shares" }, row.shares.map((share) => element("li", null, "variance of ", element("bdi", null, share.of), " from ", element("bdi", null, share.from), `: ${share.old} before, `, element("b", null, share.new), " now")))]);
  const words = rows.length ? `${plural(rows.length, "pattern")} appeared, went or changed, ${since.stay} stay as they were.` : `Nothing: ${plural(since.stay, "pattern")} as before.`;
  return element("section", { class: "panel since", "aria-label": "What changed" }, element("h3", null, "What changed since ", element("bdi", null, since.name)), element("p", null, words),
    rows.length ? plainTable(["function", "", "before", "now", "comes from"], rows) : "");
}

// A pattern of now is a link to it; what went is a name.
function sinceName(row) {
  if (row.id == null || patternOf(row.id) < 0) return named("span", null, row.name);
  return element("button", { type: "button", class: "link", onclick: () => choosePattern(patternOf(row.id)) }, element("bdi", null, row.name));
}
