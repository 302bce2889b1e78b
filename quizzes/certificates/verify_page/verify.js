// The verdict on the bytes of a certificate: docs/certificates.md, word by word, and the twin of verify.py.

const CLOCK_TOLERANCE = 5 * 60 * 1000;

class Refusal extends Error {
  constructor(verdict, detail, secured = null, more = {}) {
    super(detail);
    Object.assign(this, { verdict, detail, secured, ...more });
  }
}

// `trust` is {issuer, status, revocations}: the parsed issuer.json, and the bytes of status.json and revocations.json or null.
// Gives {verdict, detail, secured, notes}. Never throws for what is in `bytes`.
async function verifyFile(bytes, trust, now = new Date()) {
  let notes = [];
  try {
    const whole = await wholeFile(bytes);
    const { secured } = whole;
    notes = whole.notes;
    checkIssuer(secured, trust.issuer);
    await checkRevoked(secured, trust);
    checkTime(secured, now);
    await checkStatus(secured, trust, now);
    return { verdict: "valid", detail: "", secured, notes };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { verdict: error.verdict, detail: error.detail, secured: error.secured, notes };
  }
}

async function wholeFile(bytes) {
  const refuse = (error) => new Refusal("not a certificate", error.message);
  if (PNG_SIGNATURE.every((byte, place) => bytes[place] === byte)) {
    let inside;
    try {
      inside = insidePng(bytes);
    } catch (error) {
      throw error instanceof BadFile ? refuse(error) : error;
    }
    // The credential inside of a PNG is the JSON file without its line end.
    const secured = await signed(inside);
    if (!sameBytes(inside, canonicalBytes(secured))) throw new Refusal("altered", "the credential in the PNG was rewritten");
    return { secured, notes: [VERDICTS.picture] };
  }
  if (bytes.length > LARGEST_CERTIFICATE) throw new Refusal("not a certificate", "no certificate is as large as this file");
  if (bytes[0] === 0x3c) {
    let found;
    try {
      found = insideSvg(bytes);
    } catch (error) {
      throw error instanceof BadFile ? refuse(error) : error;
    }
    const secured = await signed(found.inside);
    if (!(found.edition in EDITIONS)) throw new Refusal("not a certificate", `this page does not know edition ${found.edition}`);
    if (!sameBytes(bytes, EDITIONS[found.edition](secured, canonicalBytes(secured)))) {
      throw new Refusal("altered", "the signed content is whole, but the picture around it is not the one that belongs to it");
    }
    return { secured, notes: [] };
  }
  const secured = await signed(bytes);
  if (!sameBytes(bytes, new TextEncoder().encode(`${canonicalJson(secured)}\n`))) {
    throw new Refusal("altered", "the signed content is whole, but the file is not byte for byte as it was issued");
  }
  return { secured, notes: [] };
}

async function signed(bytes) {
  let secured;
  try {
    secured = parseJson(bytes);
    if (!isObject(secured)) throw new BadShape("it is JSON, but not an object");
    if (!("proof" in secured)) throw new BadShape("it carries no proof");
  } catch (error) {
    if (error instanceof MalformedJson || error instanceof BadShape) throw new Refusal("not a certificate", error.message);
    throw error;
  }
  let did;
  try {
    did = await verifyProof(secured);
    checkShape(secured);
    if (did !== secured.issuer.id) throw new BadProof("it names one issuer and is signed with the key of another");
    if (!isTime(secured.proof.created)) throw new BadShape("its date is not a time");
    if (canonicalJson(secured.proof["@context"] ?? null) !== canonicalJson(secured["@context"])) {
      throw new BadShape("the proof has other contexts than the certificate");
    }
  } catch (error) {
    if (error instanceof BadProof) throw new Refusal("altered", error.message);
    if (error instanceof BadShape) throw new Refusal("not a certificate", error.message);
    throw error;
  }
  return secured;
}

function checkIssuer(secured, issuer) {
  const key = issuer.keys.find((entry) => entry.id === secured.issuer.id);
  if (!key) throw new Refusal("unknown issuer", "its key is not in the list of the issuer of this page", secured);
  if (VERDICTS.test_keys.includes(key.id) && !issuer.allow_test_keys) {
    throw new Refusal("unknown issuer", "it is signed with a test key, whose private half is public", secured);
  }
  // Times of this form compare as text.
  if (secured.validFrom < key.from || (key.until !== undefined && secured.validFrom > key.until)) {
    throw new Refusal("unknown issuer", "it is dated outside the time in which its key signed", secured);
  }
}

async function signedByCurrentKey(bytes, issuer) {
  const document = parseJson(bytes);
  if (!isObject(document)) throw new BadProof("it is not an object");
  if ((await verifyProof(document)) !== issuer.keys[issuer.keys.length - 1].id) throw new BadProof("another key signed it");
  return document;
}

async function statusBits(secured, { issuer, status }) {
  if (!status) throw new BadStatus("this page carries no status list");
  const document = await signedByCurrentKey(status, issuer);
  const subject = document.credentialSubject;
  if (document.id !== secured.credentialStatus.statusListCredential) throw new BadStatus("the status list is for another address");
  if (!Array.isArray(document.type) || !document.type.includes("BitstringStatusListCredential") || !isObject(subject)) {
    throw new BadStatus("it is not a status list");
  }
  const purposes = Array.isArray(subject.statusPurpose) ? subject.statusPurpose : [subject.statusPurpose];
  if (subject.type !== "BitstringStatusList" || !purposes.includes("revocation")) throw new BadStatus("its purpose is another one");
  return { document, bits: await listBits(subject.encodedList) };
}

function isOurs(error) {
  return error instanceof BadStatus || error instanceof BadProof || error instanceof MalformedJson;
}

async function checkRevoked(secured, trust) {
  if (!secured.credentialStatus) return;
  const index = secured.credentialStatus.statusListIndex;
  const base = secured.credentialStatus.statusListCredential.replace(/\/status\.json$/, "");
  let entry;
  try {
    const list = trust.revocations ? await signedByCurrentKey(trust.revocations, trust.issuer) : { entries: [] };
    const fits = list.type === "Revocations" && list.id === `${base}/revocations.json` && Array.isArray(list.entries);
    entry = fits ? list.entries.find((one) => isObject(one) && one.index === index) : undefined;
  } catch (error) {
    if (!isOurs(error)) throw error;
  }
  let set = false;
  try {
    set = bitAt((await statusBits(secured, trust)).bits, Number(index)) === 1;
  } catch (error) {
    if (!isOurs(error)) throw error; // a list that says nothing is the matter of checkStatus
  }
  if (!set && !entry) return;
  const replaced = entry?.superseded === true ? " A new certificate took its place." : "";
  const detail = entry ? `revoked on ${entry.since}: ${entry.reason}.${replaced}` : "when and why is not known";
  throw new Refusal("revoked", detail, secured);
}

function checkTime(secured, now) {
  const latest = new Date(now.getTime() + CLOCK_TOLERANCE);
  for (const stamp of [secured.validFrom, secured.proof.created]) {
    if (new Date(stamp) > latest) throw new Refusal("expired", `it is dated ${stamp}, which is still to come`, secured);
  }
  if (secured.validUntil !== undefined && new Date(secured.validUntil) < now) {
    throw new Refusal("expired", `it ran out on ${secured.validUntil}`, secured);
  }
}

async function checkStatus(secured, trust, now) {
  if (!secured.credentialStatus) return;
  try {
    const { document, bits } = await statusBits(secured, trust);
    bitAt(bits, Number(secured.credentialStatus.statusListIndex));
    if (!isTime(document.validFrom) || !isTime(document.validUntil)) throw new BadStatus("the status list is not dated");
    if (now > new Date(document.validUntil)) throw new BadStatus(`the status list was good until ${document.validUntil}`);
    if (now.getTime() + CLOCK_TOLERANCE < new Date(document.validFrom)) throw new BadStatus("the status list is dated later than now");
  } catch (error) {
    if (isOurs(error)) throw new Refusal("status unknown", error.message, secured);
    throw error;
  }
}
