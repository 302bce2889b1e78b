// How a verdict is shown, and whom this page trusts. All text goes in as text, never as markup.

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
  place.scrollIntoView({ block: "nearest" }); // on a phone it would lie below the field
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

// Whether this page must not or cannot answer here; then it says why. In a frame of another page, a verdict could be covered or
// a forged one put beside it; a `meta` element cannot forbid frames.
function cannotAnswer() {
  if (globalThis.top !== globalThis.self) {
    say("Not in a frame", "This page stands inside another page, which could cover or forge what it says. Open it by itself.");
    return true;
  }
  if (!globalThis.crypto?.subtle) {
    say("This browser cannot verify here", "Save this page as a file and open it from there, or use its https address: " +
      "browsers lend their cryptography to no other pages. The command `offload-quiz certificate verify FILE` does the same.");
    return true;
  }
  return false;
}
