// What the page does: takes a file or pasted text, and shows the verdict. All text goes in as text, never as markup.

const MOST_BYTES = 2 * 1024 * 1024;
const NOT_FACTS = ["not a certificate", "altered"]; // of these nothing inside is shown
const trust = {
  issuer: ISSUER,
  status: STATUS === null ? null : new TextEncoder().encode(STATUS),
  revocations: REVOCATIONS === null ? null : new TextEncoder().encode(REVOCATIONS),
};

function element(name, text, into, more = {}) {
  const made = Object.assign(document.createElement(name), { textContent: text }, more);
  into.append(made);
  return made;
}

function factsOf(secured) {
  const { achievement, result } = secured.credentialSubject;
  const scale = achievement.resultDescription[0];
  const evidence = secured.evidence[0];
  const first = isFirstShape(secured);
  return [
    ["Issued to", learnerOf(secured)],
    ["Achievement", secured.name],
    ["Result", first ? `${result[0].value} of ${scale.valueMax} points (${scale.requiredValue} needed)` : `${result[0].value} of the points (${scale.requiredValue} needed)`],
    ["Course version", first ? null : achievement.version],
    ["Question bank", first ? null : bankVersion(achievement)],
    ["Asked for", achievement.criteria.narrative],
    ["How it was assessed", evidence.narrative],
    ["Its limits", evidence.description],
    ["Valid from", secured.validFrom],
    ["Valid until", secured.validUntil],
    ["Issuer", secured.issuer.name],
    ["Key of the issuer", secured.issuer.id],
    ["Certificate", secured.id],
    ["Evidence", first ? null : secured.evidence.map((one) => one.id).join("\n")],
  ].filter(([, value]) => value);
}

function show(result, source) {
  const place = document.getElementById("verdict");
  const words = VERDICTS.verdicts[result.verdict];
  const tone = { valid: "good", expired: "unsure", "status unknown": "unsure" }[result.verdict] ?? "bad";
  place.replaceChildren();
  place.className = `verdict ${tone}`;
  place.dataset.verdict = result.verdict;
  const mark = { good: "✓", bad: "✗", unsure: "!" }[tone];
  const heading = element("h2", "", place);
  element("span", `${mark} `, heading, { ariaHidden: "true" });
  heading.append(words.heading);
  element("p", words.meaning, place);
  if (result.detail) element("p", `Why: ${result.detail}`.replace(/([^.])$/, "$1."), place);
  for (const note of result.notes) element("p", note, place);
  element("p", words.advice, place);
  element("p", source, place, { className: "quiet" });
  if (!result.secured || NOT_FACTS.includes(result.verdict)) return;
  if (result.verdict !== "valid") element("p", `${words.heading}. What stands in it, not to be taken for fact:`, place);
  const list = element("dl", "", place);
  for (const [label, value] of factsOf(result.secured)) {
    element("dt", label, list);
    element("dd", value, list);
  }
}

function say(heading, message) {
  const place = document.getElementById("verdict");
  place.replaceChildren();
  place.className = "verdict unsure";
  place.dataset.verdict = "";
  element("h2", heading, place);
  element("p", message, place);
}

// A newer status.json or revocations.json of the same issuer, dropped like a certificate, takes the place of the page's own.
async function takeList(bytes) {
  let document;
  try {
    document = await signedByCurrentKey(bytes, trust.issuer);
  } catch (error) {
    if (error instanceof BadProof || error instanceof MalformedJson) return false;
    throw error;
  }
  const [slot, date] = Array.isArray(document.type) && document.type.includes("BitstringStatusListCredential")
    ? ["status", "validFrom"] : document.type === "Revocations" ? ["revocations", "issued"] : [null, null];
  if (slot === null || !isTime(document[date])) return false;
  const held = trust[slot] === null ? null : parseJson(trust[slot])[date];
  if (held !== null && document[date] < held) {
    say("Older list", `This list is dated ${document[date]}; the one of this page, dated ${held}, is newer and stays.`);
    return true;
  }
  trust[slot] = bytes;
  say("List taken", `The issuer's list of ${document[date]} is used from now on. Now choose the certificate.`);
  return true;
}

let latest = 0; // only the file chosen last is answered

async function judge(bytes, source) {
  const turn = ++latest;
  if (!globalThis.crypto?.subtle) {
    say("This browser cannot verify here", "Save this page as a file and open it from there, or use its https address: " +
      "browsers lend their cryptography to no other pages. The command `offload-quiz certificate verify FILE` does the same.");
    return;
  }
  if (await takeList(bytes)) return;
  const result = await verifyFile(bytes, trust);
  if (turn === latest) show(result, source);
}

async function judgeFile(file) {
  if (file.size > MOST_BYTES) {
    say("Not read", `${file.name} has ${file.size} bytes; no certificate has more than ${MOST_BYTES}.`);
    return;
  }
  let bytes;
  try {
    bytes = new Uint8Array(await file.arrayBuffer());
  } catch {
    say("Not read", `${file.name} cannot be read. If it is a folder, choose the file in it.`);
    return;
  }
  await judge(bytes, `File: ${file.name}`);
}

function start() {
  const drop = document.getElementById("drop");
  const input = document.getElementById("file");
  input.addEventListener("change", () => input.files.length && judgeFile(input.files[0]));
  for (const kind of ["dragover", "drop", "dragleave"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) judgeFile(event.dataTransfer.files[0]);
    });
  }
  document.getElementById("check").addEventListener("click", () => {
    const text = document.getElementById("text").value.trim();
    // Copying loses the line end with which every certificate file ends.
    if (text) judge(new TextEncoder().encode(`${text}\n`), "From pasted text");
    else say("Nothing to verify", "Paste the content of a certificate's .json or .svg file first.");
  });
  document.getElementById("ready").textContent = STATUS === null
    ? "This page carries no status list: it cannot tell whether a certificate was revoked."
    : `The status list of this page is dated ${parseJson(trust.status).validFrom}. A newer status.json can be dropped here too.`;
}

start();
