// The sources: beside every line its count in the costliest run, and its clusters as coloured squares.

function sourcePanel() {
  if (!trend.files.length) return "";
  const kept = trend.files.some((file) => file.packed);
  return element("section", { id: "source", "aria-label": "Source" },
    element("div", { class: "source-bar" }, element("select", { id: "file", "aria-label": "Source file", onchange: (event) => openFile(Number(event.target.value)) },
      trend.files.map((file, i) => element("option", { value: i, title: file.path, disabled: !file.packed }, file.name))),
      element("span", { class: "choice" },
        element("button", { type: "button", id: "previous", title: "Previous line of the cluster (p)", onclick: () => step(-1) }, "‹"),
        element("button", { type: "button", id: "next", title: "Next line of the cluster (n)", onclick: () => step(1) }, "›")),
      element("span", { id: "source-note", class: "quiet small" }, kept ? `counts of run ${trend.costliest.run}, the one with the largest counts (${trend.costliest.total} in all); squares are clusters, click to select` : "")),
    element("div", { id: "listing", tabindex: 0, onclick: clickLine }));
}

async function openFile(index, line = null) {
  const file = trend.files[index];
  if (!file?.packed) return;
  if (looking.file !== index) {
    looking.file = index;
    file.content ??= await inflate(file.packed);
    if (looking.file !== index) return;
    document.getElementById("file").value = index;
    const marks = new Map(file.content.marks.map((mark) => [mark[0], mark]));
    const most = Math.max(1, ...file.content.marks.map(([, count]) => count));
    document.getElementById("listing").classList.toggle("long", file.content.text.length > 1000);
    document.getElementById("listing").replaceChildren(...file.content.text.map((text, i) => sourceLine(i + 1, text, marks.get(i + 1), most)));
  }
  markLines();
  if (line != null) toLine(line);
}

function sourceLine(number, text, mark, most) {
  const [, count, ranks = [], blocks = []] = mark ?? [];
  const gutter = element("span", { class: "gutter" }, ranks.slice(0, 3).map((rank) => clusterSwatch(clusterOf(rank))), ranks.length > 3 ? "…" : "");
  const heat = element("span", { class: "heat", "aria-hidden": "true" });
  // On a logarithmic scale, a tenth of the most frequent line is still visible.
  if (count > 0) heat.style.width = `${Math.max(4, (100 * Math.log1p(count)) / Math.log1p(most))}%`;
  return element("div", { class: mark && count === 0 ? "src never" : "src", "data-line": number, "data-ranks": ranks.join(" "), title: lineTitle(count, ranks, blocks) },
    gutter, element("span", { class: "times" }, mark ? [heat, element("span", null, countText(count))] : ""), element("span", { class: "lineno" }, String(number)), element("code", { dir: "ltr" }, text || " "));
}

function lineTitle(count, ranks, blocks) {
  if (count == null) return null;
  const of = (some) => (some.length ? some.map((rank) => `cluster ${rank}`).join(", ") : "in no cluster: its count hardly varies");
  return [`executed ${count.toLocaleString("en")} times, ${count || ranks.length ? of(ranks) : "never"}`,
    ...blocks.slice(0, 12).map(([name, times, some]) => `${name}: ${times.toLocaleString("en")}, ${of(some)}`)].join("\n");
}

// Lines of the selected cluster stand out.
function markLines() {
  const wanted = String(looking.rank);
  const style = document.getElementById("listing")?.style;
  if (!style) return;
  style.setProperty("--mine", ownColour(clusterOf(looking.rank)));
  for (const line of document.querySelectorAll("#listing .src")) line.classList.toggle("mine", line.dataset.ranks.split(" ").includes(wanted));
}

// Scrolls only the listing.
function toLine(number) {
  const listing = document.getElementById("listing");
  const line = listing.querySelector(`[data-line="${number}"]`);
  if (!line) return;
  listing.scrollTop = line.offsetTop - listing.clientHeight / 3;
  listing.querySelector(".here")?.classList.remove("here");
  line.classList.add("here");
}

// The next line of the selected cluster; after the last line of this file, in its next file.
function step(way) {
  const mine = [...document.querySelectorAll("#listing .mine")].map((line) => Number(line.dataset.line));
  const here = Number(document.querySelector("#listing .here")?.dataset.line ?? (way > 0 ? 0 : Infinity));
  const next = way > 0 ? mine.find((line) => line > here) : mine.findLast((line) => line < here);
  if (next != null) return toLine(next);
  const spots = clusterOf(looking.rank).spots.filter(([file]) => trend.files[file].packed);
  if (!spots.length) return undefined;
  const [file, line] = spots.at((spots.findIndex(([one]) => one === looking.file) + way + spots.length) % spots.length);
  return openFile(file, line);
}

// A click selects the line's first cluster, another click the next one.
function clickLine(event) {
  const line = event.target.closest(".src");
  if (!line?.dataset.ranks || String(getSelection())) return;
  const ranks = line.dataset.ranks.split(" ").map(Number);
  const chip = event.target.closest(".chip");
  const wanted = chip ? Number(chip.textContent) : ranks[(ranks.indexOf(looking.rank) + 1) % ranks.length];
  toLine(Number(line.dataset.line));
  selectCluster(wanted, { open: false });
}
