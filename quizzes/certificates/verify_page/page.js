// What the page does: takes a file, a pasted text or an id, and has the verdict shown.

const MOST_BYTES = 2 * 1024 * 1024;

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

let latest = 0; // only what was given last is answered

async function judge(bytes, source) {
  const turn = ++latest;
  if (cannotAnswer()) return;
  if (await takeList(bytes)) return;
  const result = await verifyFile(bytes, trust);
  if (turn === latest) show(result, source);
}

async function judgeFile(file) {
  const turn = ++latest;
  if (file.size > MOST_BYTES) {
    say("Not read", `${file.name} has ${file.size} bytes; no certificate has more than ${MOST_BYTES}.`);
    return;
  }
  let bytes;
  try {
    bytes = new Uint8Array(await file.arrayBuffer());
  } catch {
    if (turn === latest) say("Not read", `${file.name} cannot be read. If it is a folder, choose the file in it.`);
    return;
  }
  if (turn === latest) await judge(bytes, `File: ${file.name}`);
}

// An id, or the address of a certificate's page, in any way that people write it: the id in its one form; null for other text.
function readIdentifier(text) {
  const last = text.replace(/(\.(json|svg|png|pdf)|\/(index\.html)?)$/i, "").split("/").pop();
  const plain = last.replace(/[\s\u2010-\u2015\u2212-]+/g, "").replace(/[a-z]/g, (letter) => letter.toUpperCase());
  return /^[0-9A-Z*~$=]{25,29}$/.test(plain) ? plain.replace(/[IL]/g, "1").replaceAll("O", "0") : null;
}

function answerIdentifier(identifier) {
  latest++;
  if (!isIdentifier(identifier)) {
    say("Not an id", "This looks like the id of a certificate, but its check symbol does not fit: a symbol was mistyped, " +
      `left out or doubled. An id has 27 symbols; this has ${identifier.length}.`);
    return;
  }
  say("An id, not yet a certificate", "An id says where a certificate stands; this page holds none and asks no server. " +
    "Open the page of this id, or choose the certificate's file.");
  const address = `${PAGES}${identifier}/`;
  element("a", address, element("p", "", document.getElementById("verdict")), { href: address, id: "address" });
}

function judgeText(text) {
  if (!text) return say("Nothing to verify", "Paste the content of a certificate's .json or .svg file, or its id, first.");
  if (text.length > MOST_BYTES) {
    return say("Not read", `The text has ${text.length} characters; no certificate has more than ${MOST_BYTES}.`);
  }
  const identifier = text.length <= 600 ? readIdentifier(text) : null;
  if (identifier !== null) return answerIdentifier(identifier);
  // Copying loses the line end with which every certificate file ends.
  judge(new TextEncoder().encode(`${text}\n`), "From pasted text");
}

function start() {
  const choose = document.getElementById("choose");
  const input = document.getElementById("file");
  choose.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files.length) judgeFile(input.files[0]);
    input.value = ""; // so that the same file, changed meanwhile, can be chosen again
  });
  for (const kind of ["dragover", "drop", "dragleave"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      choose.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) judgeFile(event.dataTransfer.files[0]);
    });
  }
  document.addEventListener("paste", (event) => {
    if (!event.clipboardData?.files.length) return; // text goes into the field, as everywhere
    event.preventDefault();
    judgeFile(event.clipboardData.files[0]);
  });
  document.getElementById("check").addEventListener("click", () => judgeText(document.getElementById("text").value.trim()));
  document.getElementById("ready").textContent = STATUS === null
    ? "This page carries no status list: it cannot tell whether a certificate was revoked."
    : `The status list of this page is dated ${parseJson(trust.status).validFrom}. A newer status.json can be dropped here too.`;
  cannotAnswer();
}

start();
