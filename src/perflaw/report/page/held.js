// Laws of several features are drawn over one of them; the others are held where these sliders stand, medians at first.

const NOTCHES = 400;

function heldBar(data, feature, changed) {
  const model = modelOf(data);
  const others = model.asked.means.filter((name) => name !== feature && model.extents[name]);
  if (!others.length) return [];
  const reset = element("button", { type: "button", class: "link", onclick: () => { view.held = {}; changed(); showBar(); } }, "medians");
  const showBar = () => document.getElementById("held").replaceChildren(...heldBar(data, feature, changed));
  return [element("span", { class: "quiet small" }, "held at"), ...others.map((name) => slider(model, name, changed)), reset];
}

function slider(model, name, changed) {
  const [low, high] = model.extents[name];
  const scale = notched(low, high);
  const shown = element("input", { type: "number", step: "any", value: view.held[name] ?? model.all[name], "data-held": name, "aria-label": `${name}, held at` });
  const range = element("input", { type: "range", min: 0, max: NOTCHES, value: scale.notch(view.held[name] ?? model.all[name]), "aria-label": name, "data-slider": name });
  range.addEventListener("input", () => { shown.value = view.held[name] = scale.value(Number(range.value)); changed(); });
  shown.addEventListener("input", () => {
    if (shown.value === "") delete view.held[name];
    else view.held[name] = Number(shown.value);
    range.value = scale.notch(view.held[name] ?? model.all[name]);
    changed();
  });
  return element("label", { class: "slider" }, named("span", null, name), " ", range, shown);
}

// Sliders move evenly through orders of magnitude where the values span them.
function notched(low, high) {
  const log = low > 0 && high > 20 * low;
  const whole = Number.isInteger(low) && Number.isInteger(high);
  const to = log ? Math.log : (x) => x, back = log ? Math.exp : (x) => x;
  const width = to(high) - to(low) || 1;
  const tidy = (x) => (whole ? Math.round(x) : Number(x.toPrecision(4)));
  return {
    value: (notch) => tidy(back(to(low) + (width * notch) / NOTCHES)),
    notch: (value) => Math.round((NOTCHES * (to(Math.min(high, Math.max(low, value))) - to(low))) / width),
  };
}
