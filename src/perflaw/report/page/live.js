// A page that a server keeps up to date: asks for the page's small state, says how the experiment is, and loads the page
// again when there is another version of it. What is selected is in the address, so it stays.

const LIVE_MS = 1000;
let liveVersion = document.getElementById("live").dataset.version;

async function askState() {
  if (document.hidden) return; // nobody looks: the server need not make anything
  const bar = document.getElementById("live");
  try {
    const answer = await fetch(`${location.pathname}/state`, { cache: "no-cache" });
    if (!answer.ok) throw new Error(answer.status);
    const state = await answer.json();
    showState(bar, state.text ?? "", state.error ?? "");
    if (state.version && state.version !== liveVersion) takeVersion(bar, state.version);
  } catch (error) {
    showState(bar, "", "The server does not answer; what is shown may be old.");
  }
}

// Elements are changed only where the words are others, so that a screen reader speaks of changes alone.
function showState(bar, text, error) {
  const place = bar.querySelector(".live-text"), wrong = bar.querySelector(".live-error");
  if (place.textContent !== text) place.textContent = text;
  if (wrong.textContent !== error) wrong.textContent = error;
  wrong.hidden = !error;
}

// Whoever types is not interrupted.
function takeVersion(bar, version) {
  const busy = document.activeElement?.closest("input:not([type=range]), textarea") && document.activeElement.value;
  if (!busy) return location.reload();
  liveVersion = version;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "show what is new";
  button.addEventListener("click", () => location.reload());
  bar.append(button);
}

setInterval(askState, LIVE_MS);
document.addEventListener("visibilitychange", askState);
askState();
