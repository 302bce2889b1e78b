// Bitstring status lists (W3C "Bitstring Status List v1.0"): whether an issuer took a certificate back.

const SHORTEST_LIST = 131072; // bits; a shorter list tells who is meant
const LONGEST_LIST = 8 * 8 * 1024 * 1024; // bits; a longer one is refused before it fills the memory

class BadStatus extends Error {}

function base64UrlDecode(text) {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) throw new BadStatus("the list is not written in base64url");
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (symbol) => symbol.charCodeAt(0));
}

// The bytes behind gzip; stops as soon as there are more than `limit`, so that a bomb costs nothing.
async function gunzip(bytes, limit) {
  if (typeof DecompressionStream === "undefined") throw new BadStatus("this browser cannot unpack the list; use a newer one");
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    let step;
    try {
      step = await reader.read();
    } catch {
      throw new BadStatus("the list is damaged: it cannot be unpacked");
    }
    if (step.done) break;
    size += step.value.length;
    if (size > limit) {
      await reader.cancel();
      throw new BadStatus("the list is longer than any list of this program");
    }
    parts.push(step.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// The bits of an encodedList ("u" and base64url of a gzip stream), as bytes; bit 0 is the leftmost of the first byte.
async function listBits(encoded) {
  if (typeof encoded !== "string" || !encoded.startsWith("u")) throw new BadStatus("the list does not begin with u");
  const bits = await gunzip(base64UrlDecode(encoded.slice(1)), LONGEST_LIST / 8);
  if (bits.length * 8 < SHORTEST_LIST) throw new BadStatus("the list is shorter than 131,072 entries");
  return bits;
}

function bitAt(bits, index) {
  if (index >= bits.length * 8) throw new BadStatus("the list has no entry of this number");
  return (bits[index >> 3] >> (7 - (index & 7))) & 1;
}
