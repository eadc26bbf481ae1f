// Numbers that the page computes, written like the numbers that come with it (quantity.py).

const SIZES = {
  ns: [[0, 1, "ns"], [999.5, 1e3, "µs"], [999.5e3, 1e6, "ms"], [999.5e6, 1e9, "s"], [120e9, 60e9, "min"], [7200e9, 3600e9, "h"],
    [2 * 86400e9, 86400e9, "days"], [730 * 86400e9, 365.25 * 86400e9, "years"]],
  bytes: [[0, 1, "B"], [999.5, 1e3, "kB"], [999.5e3, 1e6, "MB"], [999.5e6, 1e9, "GB"], [999.5e9, 1e12, "TB"]],
};
const COUNTS = [[0, 1, ""], [9999.5, 1e3, "k"], [999.5e3, 1e6, "M"], [999.5e6, 1e9, "G"], [999.5e9, 1e12, "T"],
  [999.5e12, 1e15, "P"], [999.5e15, 1e18, "E"], [999.5e18, 1, ""]];

function quantity(value, unit) {
  if (!Number.isFinite(value)) return "—";
  const rates = unit.startsWith("B/") && SIZES.bytes.map(([from, size, name]) => [from, size, name + unit.slice(1)]);
  const steps = SIZES[unit] ?? (rates || COUNTS.map(([from, size, name]) => [from, size, `${name} ${unit}`.trim()]));
  const [, size, name] = steps.findLast(([from]) => from <= Math.abs(value)) ?? steps[0];
  return `${twoDigits(value / size)} ${name}`.trim();
}

function twoDigits(value) {
  const size = Math.abs(value);
  if (size >= 999_999.5 || (size < 0.001 && size > 0)) return value.toExponential(1).replace("e+", "e");
  if (size >= 0.995) return value.toLocaleString("en", { minimumFractionDigits: size < 9.95 ? 1 : 0, maximumFractionDigits: size < 9.95 ? 1 : 0 });
  return String(Number(value.toPrecision(2)));
}

// Whether the interval for a mean says where it is.
const isKnown = (mean, low, high) => high <= (low > 0 ? 100 * low : 10 * mean);

const span = (low, high, unit) => `${quantity(low, unit)}–${quantity(high, unit)}`;

// A number of things with their name: "1 run", "2 runs".
const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

// Whole numbers as they are, large ones with two digits.
const countText = (value) => (value < 9999.5 ? Math.round(value).toLocaleString("en") : quantity(value, ""));

const shareText = (part) => (part == null ? "—" : part > 0 && part < 0.0005 ? "<0.1\u00a0%" : `${(part * 100).toFixed(part > 0 && part < 0.0095 ? 1 : 0)}\u00a0%`);
