// Base 58, did:key and Ed25519 (RFC 8032) in the strict reading of ed25519.py: one key and one signature have one encoding
// each, and a key under which a signature says nothing is refused.
// The browser does the arithmetic where it can; older ones get the curve below, which is slow but only ever verifies.

const BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const LONGEST_BASE58 = 200;
const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

class BadSignature extends Error {}

function modulo(value, by = P) {
  const rest = value % by;
  return rest < 0n ? rest + by : rest;
}

function power(base, exponent) {
  let result = 1n;
  for (let square = modulo(base); exponent > 0n; exponent >>= 1n, square = modulo(square * square)) {
    if (exponent & 1n) result = modulo(result * square);
  }
  return result;
}

const D = modulo(-121665n * power(121666n, P - 2n));
const ROOT_OF_MINUS_ONE = power(2n, (P - 1n) / 4n);

function base58Decode(text) {
  if (text.length > LONGEST_BASE58) throw new BadSignature("a base 58 text is longer than any key or signature");
  let number = 0n;
  for (const symbol of text) {
    const digit = BASE58.indexOf(symbol);
    if (digit < 0) throw new BadSignature("a symbol does not belong to base 58");
    number = number * 58n + BigInt(digit);
  }
  const bytes = [];
  for (; number > 0n; number >>= 8n) bytes.unshift(Number(number & 255n));
  const zeros = text.length - text.replace(/^1+/, "").length;
  return new Uint8Array([...new Array(zeros).fill(0), ...bytes]);
}

function littleEndian(bytes) {
  return bytes.reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n);
}

function checkPublicKey(key) {
  if (key.length !== 32) throw new BadSignature("an Ed25519 public key has 32 bytes");
  const y = littleEndian(key) & (2n ** 255n - 1n);
  if (y >= P) throw new BadSignature("the public key is not written in its one canonical form");
  if (modulo(y * (y * y - 1n) * (D * y ** 4n + 2n * y * y - 1n)) === 0n) {
    throw new BadSignature("the public key is a point of small order, under which signatures prove nothing");
  }
}

function keyOfDid(did) {
  const found = /^did:key:z([^]*)$/.exec(did);
  if (!found) throw new BadSignature("the name of an issuer has the form did:key:z6Mk…");
  const data = base58Decode(found[1]);
  if (data[0] !== 0xed || data[1] !== 0x01) throw new BadSignature("the did:key does not name an Ed25519 key");
  checkPublicKey(data.slice(2));
  return data.slice(2);
}

function didOfMethod(method) {
  const did = method.split("#", 1)[0];
  if (method !== `${did}#${did.replace(/^did:key:/, "")}`) {
    throw new BadSignature("the verification method does not have the form did:key:z6Mk…#z6Mk… with the same key twice");
  }
  keyOfDid(did);
  return did;
}

// Points as [X, Y, Z, T] with x = X/Z, y = Y/Z, xy = T/Z (RFC 8032, 5.1.4).
function add([x1, y1, z1, t1], [x2, y2, z2, t2]) {
  const a = modulo((y1 - x1) * (y2 - x2));
  const b = modulo((y1 + x1) * (y2 + x2));
  const c = modulo(2n * t1 * t2 * D);
  const d = modulo(2n * z1 * z2);
  return [modulo((b - a) * (d - c)), modulo((d + c) * (b + a)), modulo((d - c) * (d + c)), modulo((b - a) * (b + a))];
}

function times(scalar, point) {
  let result = [0n, 1n, 1n, 0n];
  for (; scalar > 0n; scalar >>= 1n, point = add(point, point)) if (scalar & 1n) result = add(result, point);
  return result;
}

function pointOf(bytes) {
  const number = littleEndian(bytes);
  const y = number & (2n ** 255n - 1n);
  const square = modulo((y * y - 1n) * power(D * y * y + 1n, P - 2n));
  let x = power(square, (P + 3n) / 8n);
  if (modulo(x * x - square) !== 0n) x = modulo(x * ROOT_OF_MINUS_ONE);
  if (modulo(x * x - square) !== 0n || (x === 0n && number >> 255n)) return null;
  if ((x & 1n) !== number >> 255n) x = P - x;
  return [x, y, 1n, modulo(x * y)];
}

function bytesOf([x, y, z]) {
  const inverse = power(z, P - 2n);
  let number = modulo(y * inverse) | ((modulo(x * inverse) & 1n) << 255n);
  return Uint8Array.from({ length: 32 }, () => {
    const byte = Number(number & 255n);
    number >>= 8n;
    return byte;
  });
}

async function digest(name, ...parts) {
  const joined = new Uint8Array(await new Blob(parts).arrayBuffer());
  return new Uint8Array(await crypto.subtle.digest(name, joined));
}

async function verifyByHand(key, signature, message) {
  const base = pointOf(bytesOf([0n, modulo(4n * power(5n, P - 2n)), 1n, 0n])); // y = 4/5, x even
  const point = pointOf(key);
  if (!point) return false;
  const challenge = modulo(littleEndian(await digest("SHA-512", signature.slice(0, 32), key, message)), ORDER);
  const negative = [P - point[0], point[1], 1n, P - point[3]];
  const r = bytesOf(add(times(littleEndian(signature.slice(32)), base), times(challenge, negative)));
  return sameBytes(r, signature.slice(0, 32));
}

async function verifyByBrowser(key, signature, message) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, imported, signature, message);
}

async function browserKnowsEd25519() {
  const one = Uint8Array.from([88, ...new Array(31).fill(102)]); // the curve's base point: a key like any other
  try {
    await crypto.subtle.importKey("raw", one, { name: "Ed25519" }, false, ["verify"]);
    return true;
  } catch {
    return false;
  }
}

async function verifySignature(key, signature, message) {
  checkPublicKey(key);
  if (signature.length !== 64) throw new BadSignature("an Ed25519 signature has 64 bytes");
  if (littleEndian(signature.slice(32)) >= ORDER) throw new BadSignature("the signature is not in its one canonical form");
  let fits;
  if (await browserKnowsEd25519()) {
    // A key that is no point of the curve may already fail to load.
    fits = await verifyByBrowser(key, signature, message).catch(() => false);
  } else {
    fits = await verifyByHand(key, signature, message);
  }
  if (!fits) throw new BadSignature("the signature does not fit the content under this key");
}
