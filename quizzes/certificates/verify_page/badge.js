// The SVG of a certificate, byte for byte as badge.py and badge_layout.py draw it: a picture that says something else is altered.

const [WIDTH, HEIGHT] = [1120, 792];
const [QR_LEFT, QR_TOP, QR_SIDE] = [764, 452, 276];
const COURSE = "Optimizer state offloading";
const ADVICE = "A picture proves nothing. Check this file: offload-quiz certificate verify FILE";
const FIRST_WIDE = 0x1100;

function escapeXml(text) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };
  return text.replace(/[&<>"']/g, (symbol) => names[symbol]);
}

function widthOf(text) {
  let fifths = 0;
  for (const symbol of text) fifths += symbol.codePointAt(0) >= FIRST_WIDE ? 5 : 3;
  return fifths / 5;
}

// The twin of text.most_width; WIDTHS is widths.json.
const SYMBOL_WIDTHS = new Map();
for (const [tenths, symbols] of Object.entries(WIDTHS.symbols)) {
  for (const symbol of symbols) SYMBOL_WIDTHS.set(symbol, Number(tenths));
}

function mostWidth(text) {
  let tenths = 0;
  for (const symbol of text) {
    const number = symbol.codePointAt(0);
    tenths += SYMBOL_WIDTHS.get(symbol) ?? WIDTHS.ranges.findLast(([start]) => start <= number)[1];
  }
  return tenths / 10;
}

function wrap(text, limit, measure = widthOf) {
  const lines = [""];
  const last = () => lines[lines.length - 1];
  for (const word of text.split(" ")) {
    const joined = last() ? `${last()} ${word}` : word;
    if (measure(joined) <= limit) {
      lines[lines.length - 1] = joined;
      continue;
    }
    if (last()) lines.push("");
    for (const symbol of word) {
      if (last() && measure(last() + symbol) > limit) lines.push("");
      lines[lines.length - 1] += symbol;
    }
  }
  return lines;
}

function fitted(content, sizes, room, measure) {
  let found;
  for (const [size, allowed] of sizes) {
    found = [size, wrap(content, room / size, measure)];
    if (found[1].length <= allowed) break;
  }
  return found;
}

const MIDDLE = ' text-anchor="middle"';
const BOLD = ' font-weight="bold"';
const MONO = ' font-family="monospace"';

function lineOf(x, y, size, text, more = "", quiet = false) {
  const number = (value) => String(Number(value.toPrecision(6)));
  const fill = quiet ? "#4a4a4a" : "#1b1b1b";
  return `<text x="${number(x)}" y="${number(y)}" font-size="${size}" fill="${fill}"${more}>${escapeXml(text)}</text>`;
}

function datesOf(secured) {
  const end = secured.validUntil ? `, valid until ${secured.validUntil.slice(0, 10)}` : "";
  return `Issued on ${secured.validFrom.slice(0, 10)}${end}`;
}

function learnerOf(secured) {
  return secured.credentialSubject.identifier[0].identityHash;
}

function headOf(secured, passed, measure = widthOf, smallerName = [], smallerAchievement = []) {
  const lines = [lineOf(560, 124, 40, "Certificate", `${MIDDLE}${BOLD} letter-spacing="6"`)];
  lines.push(lineOf(560, 164, 18, COURSE, MIDDLE, true));
  let y = 198;
  let [size, wrapped] = fitted(learnerOf(secured), [[52, 1], [42, 1], [34, 1], [28, 2], [20, 3], ...smallerName], 940, measure);
  for (const line of wrapped) lines.push(lineOf(560, (y += size * 1.15), size, line, MIDDLE + BOLD));
  lines.push(lineOf(560, (y += 38), 18, passed, MIDDLE, true));
  const sizes = [[28, 1], [24, 1], [20, 2], [16, 3], ...smallerAchievement];
  [size, wrapped] = fitted(secured.credentialSubject.achievement.name, sizes, 940, measure);
  y += 6;
  for (const line of wrapped) lines.push(lineOf(560, (y += size * 1.25), size, line, MIDDLE));
  return [lines, y + 36];
}

function firstEdition(secured) {
  const { achievement, result } = secured.credentialSubject;
  const evidence = secured.evidence[0];
  const scale = achievement.resultDescription[0];
  const points = `${result[0].value} of ${scale.valueMax} points (${scale.requiredValue} needed)`;
  const [lines, below] = headOf(secured, "passed the quiz of");
  lines.push(lineOf(560, below, 20, `${points} · ${datesOf(secured)}`, MIDDLE));
  let y = 478;
  const parts = [["Asked for", achievement.criteria.narrative], [evidence.name, evidence.narrative], ["Its limits", evidence.description]];
  for (const [heading, content] of parts) {
    lines.push(lineOf(84, y, 14, heading, BOLD));
    for (const line of wrap(content, 640 / 14)) lines.push(lineOf(84, (y += 18), 14, line));
    y += 25;
  }
  for (const [heading, content] of [["Certificate", secured.id], ["Key of the issuer", secured.issuer.id]]) {
    lines.push(lineOf(84, y, 13, heading, BOLD), lineOf(224, y, 13, content, MONO));
    y += 19;
  }
  lines.push(lineOf(84, y + 4, 13, ADVICE, "", true));
  const summary =
    `${learnerOf(secured)} passed the quiz of ${achievement.name} of the course ${COURSE}. ${points}. ${datesOf(secured)}. ` +
    `${evidence.name}: ${evidence.narrative} ${evidence.description} Asked for: ${achievement.criteria.narrative} ` +
    `Certificate ${secured.id}, key of the issuer ${secured.issuer.id}. A QR code repeats the id, the key and the signature.`;
  const qr = ["Offload Lab certificate", secured.id, secured.issuer.id, secured.proof.proofValue].join("\n");
  return { lines, summary, qr };
}

const SMALLER = [[[16, 4], [12, 5], [8, 7], [6, 9]], [[12, 4], [8, 6], [6, 9]]];

// Edition 2 with `widthOf`, edition 3 with `mostWidth` and SMALLER.
function todayEdition(secured, measure, smaller = []) {
  const { achievement, result } = secured.credentialSubject;
  const evidence = secured.evidence[0];
  const points = `${result[0].value} of the points (${achievement.resultDescription[0].requiredValue} needed)`;
  const passed = achievement.achievementType === "Course" ? "passed the quizzes of" : "passed the quiz of";
  const [lines, below] = headOf(secured, passed, measure, ...smaller);
  lines.push(lineOf(560, below, 20, `${points} · ${datesOf(secured)}`, MIDDLE));
  const versions = `Course version ${achievement.version}, question bank ${bankVersion(achievement) || "not named"}`;
  lines.push(lineOf(560, below + 26, 15, versions, MIDDLE, true));
  const facts = [["Certificate", identifierOf(secured).match(/.{1,4}/g).join("-")], ["Key of the issuer", secured.issuer.id]];
  if ("name" in secured.issuer) facts.unshift(["Issuer", secured.issuer.name]);
  const parts = [["Asked for", achievement.criteria.narrative], ["How it was assessed", evidence.narrative], ["Its limits", evidence.description]];
  let small, bottom;
  for (const size of [14, 12, 10, 9, 8]) {
    [small, bottom] = smallPrint(parts, facts, size, measure);
    if (bottom <= 752) break;
  }
  const summary =
    `${learnerOf(secured)} ${passed} ${achievement.name} of the course ${COURSE}. ${points}. ${datesOf(secured)}. ${versions}. ` +
    `How it was assessed: ${evidence.narrative} ${evidence.description} Asked for: ${achievement.criteria.narrative} ` +
    `Certificate ${secured.id}, key of the issuer ${secured.issuer.id}. A QR code repeats the id.`;
  return { lines: [...lines, ...small], summary, qr: secured.id };
}

function smallPrint(parts, facts, size, measure) {
  const lines = [];
  const step = size + 4;
  let y = 478;
  for (const [heading, content] of parts) {
    lines.push(lineOf(84, y, size, heading, BOLD));
    for (const line of wrap(content, 640 / size)) lines.push(lineOf(84, (y += step), size, line));
    y += step + 6;
  }
  for (const [heading, content] of facts) {
    lines.push(lineOf(84, y, size - 1, heading, BOLD));
    const mono = heading !== "Issuer";
    for (const line of wrap(content, 520 / (size - 1), mono ? widthOf : measure)) {
      lines.push(lineOf(224, y, size - 1, line, mono ? MONO : ""));
      y += step;
    }
  }
  lines.push(lineOf(84, y + 4, size - 1, ADVICE, "", true));
  return [lines, y + 4];
}

function bankVersion(achievement) {
  return achievement.tag.find((tag) => tag.startsWith("bank-version:"))?.slice("bank-version:".length) ?? "";
}

function identifierOf(secured) {
  return secured.id.slice(secured.id.lastIndexOf("/") + 1);
}

function qrPath(content) {
  const rows = qrMatrix(content);
  let path = "";
  rows.forEach((row, y) => {
    for (let x = 0; x < row.length; x++) {
      let length = 0;
      while (row[x + length]) length++;
      if (length) path += `M${x} ${y}h${length}v1h-${length}z`;
      x += length;
    }
  });
  const scale = QR_SIDE / (rows.length + 8);
  const [left, top] = [QR_LEFT + 4 * scale, QR_TOP + 4 * scale];
  return (
    `<rect x="${QR_LEFT}" y="${QR_TOP}" width="${QR_SIDE}" height="${QR_SIDE}" fill="#ffffff"/>` +
    `<path transform="translate(${left.toFixed(4)} ${top.toFixed(4)}) scale(${scale.toFixed(6)})" ` +
    `shape-rendering="crispEdges" fill="#000000" d="${path}"/>`
  );
}

function draw(edition, shown, secured, data) {
  const frame = [[24, 6], [36, 1.5]].map(
    ([edge, width]) =>
      `<rect x="${edge}" y="${edge}" width="${WIDTH - 2 * edge}" height="${HEIGHT - 2 * edge}" fill="none" ` +
      `stroke="#0b4f6c" stroke-width="${width}"/>`,
  );
  const head =
    `<svg data-edition="${edition}" xmlns="http://www.w3.org/2000/svg" xmlns:openbadges="https://purl.imsglobal.org/ob/v3p0" ` +
    `viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="title desc" ` +
    `font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif">\n`;
  const inside = new TextDecoder().decode(data).replaceAll("]]>", "]]]]><![CDATA[>");
  const tail = [
    `<title id="title">${escapeXml(`Certificate of ${learnerOf(secured)}: ${secured.credentialSubject.achievement.name}`)}</title>`,
    `<desc id="desc">${escapeXml(shown.summary)}</desc>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>${frame.join("")}`,
    ...shown.lines,
    qrPath(shown.qr),
    "</svg>\n",
  ];
  return new TextEncoder().encode(`${head}${SVG_START}${inside}${SVG_END}\n${tail.join("\n")}`);
}

// Which edition belongs to which shape: one whose picture is drawn in the other's edition is not ours.
const EDITIONS = {
  1: (secured, data) => (isFirstShape(secured) ? draw(1, firstEdition(secured), secured, data) : new Uint8Array()),
  2: (secured, data) => (isFirstShape(secured) ? new Uint8Array() : draw(2, todayEdition(secured, widthOf), secured, data)),
  3: (secured, data) => (isFirstShape(secured) ? new Uint8Array() : draw(3, todayEdition(secured, mostWidth, SMALLER), secured, data)),
};

function isFirstShape(secured) {
  return secured.id.startsWith("urn:uuid:");
}
