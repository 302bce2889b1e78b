// Data integrity proofs of the suite eddsa-jcs-2022 (W3C "Data Integrity EdDSA Cryptosuites v1.0"): the twin of signing.py.

const PROOF_REQUIRED = ["type", "cryptosuite", "created", "verificationMethod", "proofPurpose", "proofValue"];
const PROOF_FIXED = { type: "DataIntegrityProof", cryptosuite: "eddsa-jcs-2022", proofPurpose: "assertionMethod" };

class BadProof extends Error {}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function without(object, key) {
  const copy = Object.assign(Object.create(null), object);
  delete copy[key];
  return copy;
}

// The did:key that signed `secured`, a document with one proof. Throws BadProof where there is no such key.
async function verifyProof(secured) {
  const proof = secured.proof;
  if (!isObject(proof)) throw new BadProof("it does not carry exactly one proof");
  if (!PROOF_REQUIRED.every((key) => key in proof)) throw new BadProof("the proof lacks a part");
  if (!Object.keys(proof).every((key) => key === "@context" || PROOF_REQUIRED.includes(key))) {
    throw new BadProof("the proof has a part that does not belong there");
  }
  for (const [key, expected] of Object.entries(PROOF_FIXED)) {
    if (proof[key] !== expected) throw new BadProof(`the proof's ${key} is not ${expected}`);
  }
  if (!PROOF_REQUIRED.every((key) => typeof proof[key] === "string")) throw new BadProof("a part of the proof is not text");
  const document = without(secured, "proof");
  if ("@context" in proof) document["@context"] = proofContext(document["@context"], proof["@context"]);
  try {
    const did = didOfMethod(proof.verificationMethod);
    if (!proof.proofValue.startsWith("z")) throw new BadProof("the signature is not written in base 58");
    const signature = base58Decode(proof.proofValue.slice(1));
    await verifySignature(keyOfDid(did), signature, await hashData(document, without(proof, "proofValue")));
    return did;
  } catch (error) {
    if (error instanceof BadSignature || error instanceof MalformedJson) throw new BadProof(error.message);
    throw error;
  }
}

// The 64 bytes that are signed: SHA-256 of the canonical proof options, then SHA-256 of the canonical document.
async function hashData(document, options) {
  const parts = [await digest("SHA-256", canonicalBytes(options)), await digest("SHA-256", canonicalBytes(document))];
  return Uint8Array.from([...parts[0], ...parts[1]]);
}

// Contexts that were added behind those of the proof do not break it; contexts before or instead of them do.
function proofContext(ofDocument, ofProof) {
  const listed = Array.isArray(ofDocument) ? ofDocument : [ofDocument];
  const signed = Array.isArray(ofProof) ? ofProof : [ofProof];
  const same = (value, place) => value !== undefined && canonicalJson(value) === canonicalJson(listed[place] ?? null);
  if (listed.length < signed.length || !signed.every(same)) {
    throw new BadProof("the contexts of the document do not begin with those of the proof");
  }
  return ofProof;
}
