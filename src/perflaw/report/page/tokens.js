// The annotation language in the page, first half: text to tokens, tokens to a tree. Nothing of it is ever run as a program.

const MOST_DEPTH = 200; // nested deeper than this, a text is refused: the reader calls itself
const MOST_TEXT = 20_000;

const TOKEN = new RegExp([
  /(?<number>(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:ns|[uµμ]s|ms|s|B|kB|MB|GB)?(?![\p{L}\p{N}_]))/,
  /(?<quoted>`(?:[^`\\]|\\.)*`)/,
  /(?<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/,
  /(?<name>[\p{L}_][\p{L}\p{N}_]*(?:(?:\.|->|::)[\p{L}\p{N}_]+)*)/,
  /(?<sign><=|>=|==|!=|&&|\|\||\*\*|[-+*/^<>!(),])/,
].map((one) => one.source).join("|"), "uy");

function tokens(text) {
  if (text.length > MOST_TEXT) throw new SyntaxError("too long");
  const found = [];
  for (let at = text.search(/\S|$/); at < text.length; at += text.slice(at).search(/\S|$/)) {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    if (!token) throw new SyntaxError(`nothing known at column ${at + 1}`);
    const [kind, value] = Object.entries(token.groups).find(([, group]) => group !== undefined);
    found.push({ kind: kind === "quoted" ? "name" : kind, value: kind === "quoted" || kind === "text" ? unquoted(value) : value });
    at = TOKEN.lastIndex;
  }
  return found;
}

// JSON's escapes, as perflaw writes them.
const ESCAPED = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const unquoted = (text) => text.slice(1, -1).replace(/\\(u[0-9a-fA-F]{4}|.)/gsu,
  (_, code) => (code.length === 5 ? String.fromCharCode(parseInt(code.slice(1), 16)) : ESCAPED[code] ?? code));

const UNITS = { ns: 1, us: 1e3, "µs": 1e3, "μs": 1e3, ms: 1e6, s: 1e9, B: 1, kB: 1e3, MB: 1e6, GB: 1e9 };

function numberOf(text) {
  const [, digits, unit] = /^(.*?)([a-zµμ]*B?)$/iu.exec(text);
  return Number(digits.replaceAll("_", "")) * (UNITS[unit] ?? 1);
}

// Weakest first; all of them group from the left but the power, which groups from the right.
const LEVELS = [["||"], ["&&"], ["<", "<=", ">", ">=", "==", "!="], ["+", "-"], ["*", "/"]];

// A tree of {kind: "number" | "text" | "name" | "unary" | "binary" | "call", …}; throws SyntaxError.
function parsed(text) {
  const reader = { tokens: tokens(text), at: 0, depth: 0 };
  const tree = binary(reader, 0);
  if (reader.at < reader.tokens.length) throw new SyntaxError(`unexpected ${reader.tokens[reader.at].value}`);
  return tree;
}

const sign = (reader) => (reader.tokens[reader.at]?.kind === "sign" ? reader.tokens[reader.at].value : null);

function expect(reader, value) {
  if (sign(reader) !== value) throw new SyntaxError(`expected ${value}`);
  reader.at += 1;
}

function binary(reader, level) {
  if (level === LEVELS.length) return unary(reader);
  let left = binary(reader, level + 1);
  while (LEVELS[level].includes(sign(reader))) {
    const op = reader.tokens[reader.at++].value;
    left = { kind: "binary", op, left, right: binary(reader, level + 1), depth: 1 + (left.depth ?? 0) };
    if (LEVELS[level][0] === "<") break; // comparisons do not chain
    if (left.depth > MOST_DEPTH * 10) throw new SyntaxError("too long a chain");
  }
  return left;
}

function unary(reader) {
  if (++reader.depth > MOST_DEPTH) throw new SyntaxError("nested too deeply");
  const op = sign(reader);
  let tree;
  if (op === "-" || op === "!") {
    reader.at += 1;
    tree = { kind: "unary", op, operand: unary(reader) };
  } else tree = power(reader);
  reader.depth -= 1;
  return tree;
}

function power(reader) {
  const base = primary(reader);
  if (sign(reader) !== "^" && sign(reader) !== "**") return base;
  reader.at += 1;
  return { kind: "binary", op: "^", left: base, right: unary(reader) };
}

function primary(reader) {
  const token = reader.tokens[reader.at++];
  if (!token) throw new SyntaxError("ends too early");
  if (token.kind === "number") return { kind: "number", value: numberOf(token.value) };
  if (token.kind === "text") return { kind: "text", value: token.value };
  if (token.kind === "name") return sign(reader) === "(" ? call(reader, token.value) : { kind: "name", name: token.value };
  if (token.value !== "(") throw new SyntaxError(`unexpected ${token.value}`);
  const inner = binary(reader, 0);
  expect(reader, ")");
  return inner;
}

function call(reader, name) {
  expect(reader, "(");
  const args = sign(reader) === ")" ? [] : [binary(reader, 0)];
  while (sign(reader) === ",") {
    reader.at += 1;
    args.push(binary(reader, 0));
  }
  expect(reader, ")");
  return { kind: "call", name, args };
}
