// The page of one certificate: the verdict on the file that the page carries (CERTIFICATE), and what belongs to a valid one.

function said(secured) {
  const { issuer, credentialSubject, evidence, validFrom } = secured;
  const { achievement, result } = credentialSubject;
  const listed = trust.status === null ? "" : ` By its list of ${parseJson(trust.status).validFrom} it had not taken that back.`;
  return {
    proves: `${trust.issuer.name || issuer.id} signed on ${validFrom.slice(0, 10)} that ${learnerOf(secured)} reached ` +
      `${result[0].value} of the points in “${achievement.name}”, and not a byte of that was changed since.${listed}`,
    limits: evidence[0].description,
  };
}

// Drawn here from what was verified, so it cannot say anything else.
function picture(secured) {
  const { summary } = todayEdition(secured, mostWidth, SMALLER);
  const drawn = new Blob([EDITIONS[3](secured, canonicalBytes(secured))], { type: "image/svg+xml" });
  Object.assign(document.getElementById("picture"), { src: URL.createObjectURL(drawn), alt: summary });
}

async function startOwn() {
  if (cannotAnswer()) return;
  const result = await verifyFile(new TextEncoder().encode(CERTIFICATE), trust);
  show(result, "Verified in this browser, with the lists that this page carries.");
  if (result.verdict !== "valid") return;
  for (const [place, text] of Object.entries(said(result.secured))) document.getElementById(place).textContent = text;
  picture(result.secured);
  document.getElementById("more").hidden = false;
}

startOwn();
