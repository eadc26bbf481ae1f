// The report's data, as page_data.py wrote it.

const report = JSON.parse(document.getElementById("data").textContent);
const inflated = new Map();

// The numbers behind the charts of row `index`. They are stored deflated, and inflated once.
async function chartData(index) {
  if (!inflated.has(index)) inflated.set(index, await inflate(report.charts[index]));
  return inflated.get(index);
}

async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(plain).text());
}
