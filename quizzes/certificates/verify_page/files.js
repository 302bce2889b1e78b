// The credential inside of a PNG or an SVG: the twins of png.py and of badge.embedded.

const LARGEST_CERTIFICATE = 256 * 1024;
const LARGEST_PNG = 1024 * 1024;
const LARGEST_INSIDE = 64 * 1024;
const PNG_SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const PNG_KEYWORD = "openbadgecredential";

class BadFile extends Error {}

function latin1(bytes) {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, value) => {
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function crc32(bytes) {
  return (bytes.reduce((crc, byte) => CRC_TABLE[(crc ^ byte) & 255] ^ (crc >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;
}

function insidePng(png) {
  if (png.length > LARGEST_PNG) throw new BadFile("the PNG is too large");
  const view = new DataView(png.buffer, png.byteOffset, png.length);
  const found = [];
  for (let place = 8, count = 0; ; count++) {
    if (png.length - place < 12) throw new BadFile("the PNG breaks off before its end");
    if (count === 4096) throw new BadFile("the PNG has too many chunks");
    const length = view.getUint32(place);
    if (length > png.length - place - 12) throw new BadFile("a chunk of the PNG is longer than the rest of it");
    const kind = latin1(png.subarray(place + 4, place + 8));
    if (!/^[A-Za-z]{4}$/.test(kind)) throw new BadFile("a chunk of the PNG has no valid type");
    if ((count === 0) !== (kind === "IHDR") || (count === 0 && length !== 13)) throw new BadFile("the PNG has no header");
    const body = png.subarray(place + 8, place + 8 + length);
    const crc = crc32(png.subarray(place + 4, place + 8 + length));
    if (crc !== view.getUint32(place + 8 + length)) throw new BadFile("a checksum of the PNG does not fit: it is damaged");
    const zero = body.indexOf(0);
    const keyword = latin1(zero < 0 ? body.subarray(0, 200) : body.subarray(0, zero)).toLowerCase();
    if (["tEXt", "zTXt", "iTXt"].includes(kind) && keyword === PNG_KEYWORD) found.push(body);
    place += 12 + length;
    if (kind === "IEND") {
      if (length || place !== png.length) throw new BadFile("something follows the end of the PNG");
      break;
    }
  }
  if (found.length !== 1) throw new BadFile(`there are ${found.length} credentials in the PNG; a certificate has one`);
  const header = `${PNG_KEYWORD}\0\0\0\0\0`;
  if (latin1(found[0].subarray(0, header.length)) !== header) throw new BadFile("the credential in the PNG is not stored as it must be");
  const inside = found[0].slice(header.length);
  if (inside.length > LARGEST_INSIDE) throw new BadFile("the credential in the PNG is too large");
  return inside;
}

const SVG_START = "<openbadges:credential><![CDATA[";
const SVG_END = "]]></openbadges:credential>";

// The edition of the drawing and the bytes of the credential. Works on bytes as Latin-1, so that nothing is decoded twice.
function insideSvg(svg) {
  const text = latin1(svg);
  const edition = /^<svg data-edition="([1-9][0-9]{0,3})" /.exec(text);
  if (!edition) throw new BadFile("the SVG does not begin as the certificates of this course do");
  const start = text.indexOf(SVG_START);
  const end = text.indexOf(SVG_END, Math.max(start, 0));
  if (start < 0 || end < 0) throw new BadFile("there is no credential in the SVG");
  const inside = text.slice(start + SVG_START.length, end).replaceAll("]]]]><![CDATA[>", "]]>");
  return { edition: Number(edition[1]), inside: Uint8Array.from(inside, (symbol) => symbol.charCodeAt(0)) };
}
