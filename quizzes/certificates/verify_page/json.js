// JSON as RFC 8259 has it and no wider, and its canonical form (RFC 8785): the twin of strict_json.py.
// JSON.parse takes the last of two equal keys and rounds long integers; two readers that disagree about a signed file are
// how it comes to say two things.

const DEEPEST = 32;
const LONGEST_INTEGER = 4300; // digits; Python's own limit

class MalformedJson extends Error {}

function parseJson(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new MalformedJson("it is not UTF-8 text");
  }
  let at = 0;
  const bad = (what) => new MalformedJson(`it is not JSON: ${what} at character ${at + 1}`);
  const skip = () => {
    while (at < text.length && " \t\n\r".includes(text[at])) at++;
  };

  function value(depth) {
    skip();
    const first = text[at];
    if (first === "{" || first === "[") {
      if (depth === DEEPEST) throw new MalformedJson(`its values are nested deeper than ${DEEPEST} levels`);
      return first === "{" ? object(depth + 1) : list(depth + 1);
    }
    if (first === '"') return string();
    for (const [word, meaning] of [["true", true], ["false", false], ["null", null]]) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    }
    return number();
  }

  function object(depth) {
    const result = Object.create(null); // no prototype: "__proto__" is a key like any other
    at++;
    skip();
    if (text[at] === "}") {
      at++;
      return result;
    }
    for (;;) {
      skip();
      if (text[at] !== '"') throw bad("a key is missing");
      const key = string();
      if (key in result) throw new MalformedJson(`the key ${JSON.stringify(key.slice(0, 40))} stands twice in one object`);
      skip();
      if (text[at] !== ":") throw bad("a colon is missing");
      at++;
      result[key] = value(depth);
      skip();
      if (text[at] === "}") break;
      if (text[at] !== ",") throw bad("a comma is missing");
      at++;
    }
    at++;
    return result;
  }

  function list(depth) {
    const result = [];
    at++;
    skip();
    if (text[at] === "]") {
      at++;
      return result;
    }
    for (;;) {
      result.push(value(depth));
      skip();
      if (text[at] === "]") break;
      if (text[at] !== ",") throw bad("a comma is missing");
      at++;
    }
    at++;
    return result;
  }

  function string() {
    const start = ++at;
    while (text[at] !== '"') {
      if (at >= text.length) throw bad("a text does not end");
      if (text[at] < " ") throw bad("a text holds a control character");
      at += text[at] === "\\" ? 2 : 1;
    }
    at++;
    try {
      return JSON.parse(text.slice(start - 1, at)); // one string literal, delimited above
    } catch {
      throw bad("a text holds an escape that does not exist");
    }
  }

  function number() {
    const literal = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
    literal.lastIndex = at;
    const found = literal.exec(text);
    if (!found) throw bad("a value is missing");
    at += found[0].length;
    if (/[.eE]/.test(found[0])) {
      if (!Number.isFinite(Number(found[0]))) throw new MalformedJson("a number is too large");
      return Number(found[0]);
    }
    if (found[0].replace("-", "").length > LONGEST_INTEGER) throw new MalformedJson("an integer has thousands of digits");
    // A BigInt keeps an integer that a double would round; canonicalJson refuses it then.
    return Number.isSafeInteger(Number(found[0])) ? Number(found[0]) : BigInt(found[0]);
  }

  const result = value(0);
  skip();
  if (at < text.length) throw bad("something follows the value");
  return result;
}

function canonicalJson(value) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") {
    if (!value.isWellFormed()) throw new MalformedJson("it has no canonical form: half a character");
    return JSON.stringify(value);
  }
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new MalformedJson("it has no canonical form: a number that is not finite");
    return JSON.stringify(value);
  }
  if (typeof value === "bigint") throw new MalformedJson("it has no canonical form: an integer beyond 2**53");
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const keys = Object.keys(value).sort(); // by UTF-16 units, as RFC 8785 wants
  return `{${keys.map((key) => `${canonicalJson(key)}:${canonicalJson(value[key])}`).join(",")}}`;
}

function canonicalBytes(value) {
  return new TextEncoder().encode(canonicalJson(value));
}

function sameBytes(one, other) {
  return one.length === other.length && one.every((byte, place) => byte === other[place]);
}
