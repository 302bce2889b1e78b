// The closed shape of certificates. What pydantic can write as JSON schema comes from certificate.py and credential.py when the
// page is built (SCHEMAS); the rest is below, rule for rule.

const HIDDEN = new RegExp(
  "[\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ufeff\\ufdd0-\\ufdef\\p{Cs}" +
    Array.from({ length: 17 }, (_, plane) => `\\u{${(plane * 65536 + 65534).toString(16)}}\\u{${(plane * 65536 + 65535).toString(16)}}`).join("") +
    "]",
  "u",
);
const UNSEEN = new RegExp(
  "[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200e\\u200f\\u2060-\\u2064\\u206a-\\u206f" +
    "\\u2800\\u3164\\ufff9-\\ufffc\\uffa0\\u{e0000}-\\u{e0fff}\\u{1d173}-\\u{1d17a}]",
  "u",
);
const ID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

class BadShape extends Error {}

// The first fault of `value` against a JSON schema of the subset that pydantic writes here, or null.
function fault(value, schema, root, where) {
  if ("$ref" in schema) return fault(value, root.$defs[schema.$ref.split("/").pop()], root, where);
  if ("anyOf" in schema) {
    const faults = schema.anyOf.map((choice) => fault(value, choice, root, where));
    return faults.includes(null) ? null : faults[0];
  }
  if ("const" in schema && value !== schema.const) return `${where}: must be ${schema.const}`;
  if ("enum" in schema && !schema.enum.includes(value)) return `${where}: must be one of ${schema.enum.join(", ")}`;
  const kind = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  if ("type" in schema && kind !== schema.type) return `${where}: must be ${schema.type}`;
  if (kind === "string") {
    const length = [...value].length;
    if (length < (schema.minLength ?? 0) || length > (schema.maxLength ?? Infinity)) return `${where}: is too short or too long`;
    const pattern = schema.pattern?.replace(/^\\A/, "^(?:").replace(/\\z$/, ")$");
    if (pattern && !new RegExp(pattern, "u").test(value)) return `${where}: is not written as it must be`;
  }
  if (kind === "array") {
    if (value.length < (schema.minItems ?? 0) || value.length > (schema.maxItems ?? Infinity)) return `${where}: has too few or too many`;
    for (const [place, item] of value.entries()) {
      const found = fault(item, schema.items, root, `${where}.${place}`);
      if (found) return found;
    }
  }
  if (kind === "object") {
    for (const key of schema.required ?? []) if (!(key in value)) return `${where}.${key}: is missing`;
    for (const key of Object.keys(value)) {
      if (!Object.hasOwn(schema.properties, key)) return `${where}.${key.slice(0, 40)}: does not belong there`;
      if (value[key] === null) return `${where}.${key}: must not be null`;
      const found = fault(value[key], schema.properties[key], root, `${where}.${key}`);
      if (found) return found;
    }
  }
  return null;
}

// Throws BadShape unless `secured`, whose proof is looked at elsewhere, is a certificate of one of the two shapes.
function checkShape(secured) {
  const first = typeof secured.id === "string" && secured.id.startsWith("urn:uuid:");
  const schema = first ? SCHEMAS.first : SCHEMAS.today;
  const shape = { ...schema, required: schema.required.filter((key) => key !== "proof") };
  const found = fault(without(secured, "proof"), shape, schema, "certificate");
  if (found) throw new BadShape(found);
  const need = (holds, message) => {
    if (!holds) throw new BadShape(message);
  };
  checkTexts(secured, need);
  need(canonicalJson(secured["@context"]) === JSON.stringify(SCHEMAS.contexts), "the contexts are not those of this course");
  need(canonicalJson(secured.type) === JSON.stringify(SCHEMAS.types), "the types are not those of this course");
  need(isTime(secured.validFrom), "validFrom is not a time");
  need(!("validUntil" in secured) || isTime(secured.validUntil), "validUntil is not a time");
  try {
    keyOfDid(secured.issuer.id);
  } catch {
    throw new BadShape("the issuer is not the name of a key");
  }
  (first ? checkFirst : checkToday)(secured, need);
}

function checkToday(secured, need) {
  const { identifier, result, achievement } = secured.credentialSubject;
  need(identifier[0].hashed === false && isName(identifier[0].identityHash), "the display name is not one");
  need(identifier.length < 2 || identifier[1].hashed === true, "the second identifier is not a hashed e-mail");
  need(!("name" in secured.issuer) || isName(secured.issuer.name), "the issuer's name is not one");
  need(result[0].resultDescription === achievement.resultDescription[0].id, "the result belongs to another scale");
  const cut = secured.id.lastIndexOf("/c/");
  const [base, identity] = [secured.id.slice(0, cut), secured.id.slice(cut + 3)];
  need(isIdentifier(identity), "the id is not that of a certificate");
  const status = secured.credentialStatus;
  if (base.startsWith("did:")) {
    need(base === secured.issuer.id && !status, "without a web address the id begins with the issuer's, and there is no status");
    return;
  }
  need((secured.issuer.url ?? base) === base, "the issuer's web address is not that of the id");
  if (!status) return;
  need(status.statusListCredential === `${base}/status.json`, "the status list is not that of the registry");
  need(status.id === `${base}/status.json#${status.statusListIndex}`, "the status has another index than its id says");
}

function checkFirst(secured, need) {
  const subject = secured.credentialSubject;
  const scale = subject.achievement.resultDescription[0];
  const value = (text) => {
    const [whole, part = ""] = text.split(".");
    return BigInt(whole + part.padEnd(12, "0"));
  };
  need(subject.identifier[0].hashed === false, "the name is said to be hashed");
  need(subject.result[0].resultDescription === scale.id, "the result belongs to another scale");
  const [needed, reached, most] = [scale.requiredValue, subject.result[0].value, scale.valueMax].map(value);
  need(needed <= reached && reached <= most, "the result does not lie between the points needed and the points possible");
}

function checkTexts(value, need) {
  if (typeof value === "string") need(!HIDDEN.test(value), "a text holds a character that cannot be shown");
  else if (value !== null && typeof value === "object") Object.values(value).forEach((part) => checkTexts(part, need));
}

function isName(text) {
  return !HIDDEN.test(text) && !UNSEEN.test(text) && text.normalize("NFC") === text;
}

function isTime(stamp) {
  if (typeof stamp !== "string" || !/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$/.test(stamp)) return false;
  const moment = new Date(stamp);
  return stamp > "0001" && !Number.isNaN(moment.getTime()) && moment.toISOString().replace(".000Z", "Z") === stamp;
}

// Whether `text` is an id: 26 symbols of Crockford's base 32 and a check symbol, the number modulo 37.
function isIdentifier(text) {
  if (text.length !== 27 || text[0] > "7") return false;
  let number = 0n;
  for (const symbol of text.slice(0, 26)) {
    const digit = ID_ALPHABET.indexOf(symbol);
    if (digit < 0) return false;
    number = number * 32n + BigInt(digit);
  }
  return `${ID_ALPHABET}*~$=U`[Number(number % 37n)] === text[26];
}
