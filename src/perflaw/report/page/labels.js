// Conditions as a person reads them: a branch by its line, a call by its callee, thresholds with grouped digits.

// Weakest first; all of them group from the left but the power, which groups from the right.
const LEVELS = [["||"], ["&&"], ["<", "<=", ">", ">=", "==", "!="], ["+", "-"], ["*", "/"]];

const conditionText = (condition, tree) => (!condition ? "everywhere" : tree ? spoken(tree) : condition);

function spoken(tree) {
  if (tree.kind === "binary" && (tree.op === "&&" || tree.op === "||")) return joined(tree);
  if (tree.kind === "unary" && tree.op === "!") return `not (${spoken(tree.operand)})`;
  const one = comparison(tree);
  return one ? special(one) ?? `${one.name} ${SPOKEN[one.op] ?? one.op} ${one.value}` : written(tree);
}

const SPOKEN = { "<=": "≤", ">=": "≥", "==": "=", "!=": "≠" };
const TURNED = { "<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!=" };

function joined(tree) {
  const parts = flat(tree, tree.op);
  if (tree.op === "||") return parts.map(spoken).join(" or ");
  return between(parts) ?? parts.map((part) => (part.op === "||" ? `(${spoken(part)})` : spoken(part))).join(" and ");
}

const flat = (tree, op) => (tree.kind === "binary" && tree.op === op ? [...flat(tree.left, op), ...flat(tree.right, op)] : [tree]);

// a < n && n <= b as "a < n ≤ b".
function between(parts) {
  if (parts.length !== 2) return null;
  const [one, other] = parts.map(comparison);
  if (!one || !other || one.name !== other.name || special(one)) return null;
  const [lower, upper] = one.op[0] === ">" ? [one, other] : [other, one];
  if (lower.op[0] !== ">" || upper.op[0] !== "<") return null;
  return `${lower.value} ${SPOKEN[TURNED[lower.op]] ?? "<"} ${one.name} ${SPOKEN[upper.op] ?? "<"} ${upper.value}`;
}

// A feature compared with a number or a text, the feature first; null for anything else.
function comparison(tree) {
  if (tree.kind === "name") return { name: tree.name, op: "!=", value: "0", number: 0 };
  if (tree.kind !== "binary" || !(tree.op in TURNED)) return null;
  const [left, right] = [tree.left, tree.right].map(literal);
  if (tree.left.kind === "name" && right) return { name: tree.left.name, op: tree.op, ...right };
  if (tree.right.kind === "name" && left) return { name: tree.right.name, op: TURNED[tree.op], ...left };
  return null;
}

function literal(tree) {
  if (tree.kind === "unary" && tree.op === "-" && tree.operand.kind === "number") return figure(-tree.operand.value);
  if (tree.kind === "number") return figure(tree.value);
  return tree.kind === "text" ? { text: tree.value, value: `"${tree.value}"` } : null;
}

const figure = (number) => ({ number, value: number.toLocaleString("en", { maximumSignificantDigits: 6 }) });

// What is counted in an invocation is mostly asked for "at all" or "never".
function special({ name, op, number, text, value }) {
  if (text != null && name.endsWith(".type")) return `${name.slice(0, -5)} is ${op === "!=" ? "not " : ""}${text}`;
  const branch = /^branch\.L(\d+)(?:_(\d+))?\.(taken|not_taken)$/.exec(name);
  const some = ((op === ">" || op === ">=") && number >= 0 && number <= (op === ">" ? 0.99 : 1)) || (op === "!=" && number === 0);
  const none = ((op === "<" || op === "<=") && number >= 0 && number < (op === "<" ? 1.01 : 1)) || (op === "==" && number === 0);
  const more = `${SPOKEN[op] ?? op} ${value}`;
  if (branch) {
    const place = `${branch[2] ? `branch ${branch[2]}` : "branch"} at line ${branch[1]}`;
    const way = branch[3] === "taken" ? "taken" : "skipped";
    return some ? `${place} ${way}` : none ? `${place} never ${way}` : `${place} ${way} ${more} times`;
  }
  const jump = /^branch\.(?:\S+\.)?L(\d+)\.to_(?:\S+\.)?L(\d+)(?:_\d+)?$/.exec(name);
  if (jump) {
    const way = `from line ${jump[1]} to line ${jump[2]}`;
    return some ? `branch ${way}` : none ? `never ${way}` : `${way} ${more} times`;
  }
  if (!name.startsWith("calls.")) return null;
  const callee = name.slice(6);
  return some ? `calls ${callee}` : none ? `does not call ${callee}` : `calls of ${callee} ${more}`;
}

// Any other expression, written as in the language.
function written(tree) {
  if (tree.kind === "number") return figure(tree.value).value;
  if (tree.kind === "text") return `"${tree.value}"`;
  if (tree.kind === "name") return tree.name;
  if (tree.kind === "unary") return tree.op + wrapped(tree.operand, LEVELS.length);
  if (tree.kind === "call") return `${tree.name}(${tree.args.map(written).join(", ")})`;
  return `${wrapped(tree.left, levelOf(tree))} ${SPOKEN[tree.op] ?? tree.op} ${wrapped(tree.right, levelOf(tree) + 0.5)}`;
}

const levelOf = (tree) => (tree.op === "^" ? LEVELS.length : LEVELS.findIndex((level) => level.includes(tree.op)));
const wrapped = (tree, level) => (tree.kind === "binary" && levelOf(tree) < level ? `(${written(tree)})` : written(tree));
