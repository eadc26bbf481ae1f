// The annotation language in the page: the tree of an expression and the values of features give a number, a truth or a text.

// A node {kind: "number" | "text" | "name" | "unary" | "binary" | "call", …} of a tree as perflaw.laws.tree writes it; null for none.
function nodeOf(tree) {
  if (tree == null) return null;
  if (typeof tree === "number") return { kind: "number", value: tree };
  if (typeof tree === "string") return { kind: "name", name: tree };
  const [head, ...parts] = tree;
  if (head === "text") return { kind: "text", value: parts[0] };
  const args = parts.map(nodeOf);
  if (Object.hasOwn(FUNCTIONS, head)) return { kind: "call", name: head, args };
  return args.length === 1 ? { kind: "unary", op: head, operand: args[0] } : { kind: "binary", op: head, left: args[0], right: args[1] };
}

const FUNCTIONS = { log: Math.log, exp: Math.exp, sqrt: Math.sqrt, min: Math.min, max: Math.max, floor: Math.floor, ceil: Math.ceil, abs: Math.abs, normal };
// As perflaw has it: 0 times infinity is 0, so that n*log(n) is 0 at 0.
const product = (a, b) => (Number.isNaN(a * b) && !Number.isNaN(+a) && !Number.isNaN(+b) ? 0 : a * b);
const OPERATORS = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": product, "/": (a, b) => a / b, "^": (a, b) => a ** b,
  "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
};

// Values are numbers or texts by feature; a feature that has none is NaN, of which no comparison holds.
function evaluate(tree, values) {
  if (tree.kind === "number" || tree.kind === "text") return tree.value;
  if (tree.kind === "name") return Object.hasOwn(values, tree.name) ? values[tree.name] ?? NaN : NaN;
  if (tree.kind === "unary") {
    const value = evaluate(tree.operand, values);
    return tree.op === "!" ? !truth(value) : -value;
  }
  if (tree.kind === "call") return FUNCTIONS[tree.name](...tree.args.map((one) => Number(evaluate(one, values))));
  return evaluateBinary(tree, values);
}

function evaluateBinary({ op, left, right }, values) {
  const a = evaluate(left, values);
  if (op === "&&") return truth(a) && truth(evaluate(right, values));
  if (op === "||") return truth(a) || truth(evaluate(right, values));
  const b = evaluate(right, values);
  if (op === "==") return same(a, b);
  if (op === "!=") return !same(a, b) && read(a) && read(b);
  return OPERATORS[op](Number(a), Number(b));
}

// As in perflaw itself, whatever is not 0 is true, but NaN is not; comparisons with NaN are 0, those with a text not read too.
const truth = (value) => (typeof value === "string" ? value !== "" : Number(value) !== 0 && !Number.isNaN(value));
const read = (value) => value !== "" && !Number.isNaN(value);
const same = (a, b) => (typeof a === "string" || typeof b === "string" ? a === b : Number(a) === Number(b));

const namesIn = (tree, found = new Set()) => {
  if (tree.kind === "name") found.add(tree.name);
  for (const part of [tree.operand, tree.left, tree.right, ...(tree.args ?? [])]) if (part) namesIn(part, found);
  return found;
};

// Distributions: what a law says of a response at given values of the features, from the formulas of perflaw.laws.distributions.
const FORMULAS = mapValues(DISTRIBUTIONS, (formulas) => mapValues(formulas, nodeOf));
function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}

// `what` is mean, quantile (at z), cdf or density (at y), for the parameters that argumentsAt gives.
const formulaAt = (law, what, [a, b], at = {}) => Number(evaluate(FORMULAS[law.name][what], { a, b, ...at }));

// Φ(z) to 2e-7 (Abramowitz and Stegun 7.1.26): more than a screen resolves. Without any spread a step.
function normal(z) {
  if (Number.isNaN(z)) return 0.5;
  const t = 1 / (1 + 0.3275911 * (Math.abs(z) / Math.SQRT2));
  const half = 0.5 * t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-z * z / 2);
  return z > 0 ? 1 - half : half;
}

// A law that can be asked, from the tree of its distribution; null where there is none: the page then draws less, and fails nowhere.
const lawOfTree = (tree, factor = 1) => tree && { name: tree[0], args: tree.slice(1).map(nodeOf), factor };

// `factor` is the metric's units in one of the law's.
const argumentsAt = (law, values) => law.args.map((one) => Number(evaluate(one, values)));
const meanAt = (law, values) => Math.max(0, formulaAt(law, "mean", argumentsAt(law, values))) * law.factor;
const densityAt = (law, y, values) => formulaAt(law, "density", argumentsAt(law, values), { y: y / law.factor }) / law.factor;
const noiseAt = (law, values) => [-CONFIDENCE.z, CONFIDENCE.z].map((z) => Math.max(0, formulaAt(law, "quantile", argumentsAt(law, values), { z })) * law.factor);
