// Elements from plain values. Strings only ever become text nodes or attribute values, never markup.

// A panel that is wider or higher than its place can be scrolled with the keyboard; others are no stop of the Tab key. Its
// children are watched as well: what grows within a panel of a fixed size does not change the panel.
const scrollable = new ResizeObserver((entries) => {
  for (const target of new Set(entries.map((entry) => entry.target.closest(".panel")).filter(Boolean))) {
    if (target.scrollWidth > target.clientWidth + 1 || target.scrollHeight > target.clientHeight + 1) target.setAttribute("tabindex", "0");
    else target.removeAttribute("tabindex");
  }
});

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) made.setAttribute(name, value); // "false" is a value of its own there
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child != null && child !== ""));
  if (made.classList.contains("panel")) for (const one of [made, ...made.children]) scrollable.observe(one);
  return made;
}

// A name from the target, isolated, so that its bidirectional characters do not reorder the text beside it.
const named = (tag, attributes, text) => element(tag, { dir: "auto", ...attributes }, element("bdi", null, text));

// Buttons of which one is pressed. `choices` are [value, label] pairs; `choose` is called with the value.
function choiceOf(label, choices, chosen, choose, name = null) {
  const group = element("div", { class: "choice", role: "group", "aria-label": label, "data-choice": name });
  for (const [value, text, disabled] of choices) {
    const press = () => {
      for (const other of group.children) other.setAttribute("aria-pressed", other === button);
      choose(value);
    };
    const button = element("button", { type: "button", "aria-pressed": value === chosen, disabled, onclick: press, "data-value": value }, text);
    group.append(button);
  }
  return group;
}

function copyButton(text) {
  const button = element("button", { type: "button", class: "copy", title: "Copy the expression" }, "copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text)) ? "copied" : "select and copy by hand";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  return button;
}

// Some browsers have no clipboard interface on pages opened as files: the old command works there.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// Elements of drawings. The namespace is taken from an element, so that the page holds no address at all.
const SVG_SPACE = document.documentElement.namespaceURI.replace("1999/xhtml", "2000/svg");

function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG_SPACE, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child != null && child !== ""));
  return made;
}

function plainTable(heads, rows, numbers = []) {
  const cell = (tag, content, i, more) => element(tag, { class: numbers.includes(i) ? "number" : null, ...more }, content);
  return element("table", { class: "plain" },
    element("thead", null, element("tr", null, heads.map((text, i) => (text === "" ? element("td") : cell("th", text, i, { scope: "col" }))))),
    element("tbody", null, rows.map((row) => element("tr", null, row.map((content, i) => cell("td", content, i))))));
}

const asPercent = (part) => `${(part * 100).toFixed(1)}%`;
