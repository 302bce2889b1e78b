// The QR symbol of qr.py: byte mode, error correction M, mask 0, the smallest version that holds the text (ISO/IEC 18004).

// By version from 1: error correction bytes of a block, then blocks and data bytes of each in one or two groups (table 9).
const QR_BLOCKS = [
  [10, 1, 16], [16, 1, 28], [26, 1, 44], [18, 2, 32], [24, 2, 43], [16, 4, 27], [18, 4, 31], [22, 2, 38, 2, 39],
  [22, 3, 36, 2, 37], [26, 4, 43, 1, 44], [30, 1, 50, 4, 51], [22, 6, 36, 2, 37], [22, 8, 37, 1, 38], [24, 4, 40, 5, 41],
  [24, 5, 41, 5, 42], [28, 7, 45, 3, 46], [28, 10, 46, 1, 47],
];
const QR_ALIGNED = [
  [], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50], [6, 30, 54],
  [6, 32, 58], [6, 34, 62], [6, 26, 46, 66], [6, 26, 48, 70], [6, 26, 50, 74], [6, 30, 54, 78],
];

const GALOIS = { power: new Uint8Array(512), log: new Uint8Array(256) };
for (let place = 0, value = 1; place < 255; place++) {
  GALOIS.power[place] = GALOIS.power[place + 255] = value;
  GALOIS.log[value] = place;
  value = (value << 1) ^ (value & 128 ? 0x11d : 0);
}

function galois(one, other) {
  return one && other ? GALOIS.power[GALOIS.log[one] + GALOIS.log[other]] : 0;
}

function correction(data, size) {
  let generator = [1];
  for (let place = 0; place < size; place++) {
    const next = [...generator, 0];
    generator.forEach((factor, at) => (next[at + 1] ^= galois(factor, GALOIS.power[place])));
    generator = next;
  }
  const rest = [...data, ...new Array(size).fill(0)];
  for (let at = 0; at < data.length; at++) {
    const lead = rest[at];
    generator.forEach((factor, place) => (rest[at + place] ^= galois(factor, lead)));
  }
  return rest.slice(data.length);
}

function remainder(value, bits, generator) {
  let rest = value << bits;
  for (let place = 31 - bits; place >= 0; place--) if (rest & (1 << (place + bits))) rest ^= generator << place;
  return rest;
}

function qrMatrix(text) {
  const bytes = new TextEncoder().encode(text);
  const room = QR_BLOCKS.map(([, blocks, size, more = 0, larger = 0]) => blocks * size + more * larger);
  const index = room.findIndex((size, at) => bytes.length * 8 + 4 + (at < 9 ? 8 : 16) <= size * 8);
  if (index < 0) throw new BadFile("the text of the QR code is too long");
  const bits = [];
  const put = (value, count) => {
    for (let place = count - 1; place >= 0; place--) bits.push((value >> place) & 1);
  };
  put(4, 4);
  put(bytes.length, index < 9 ? 8 : 16);
  bytes.forEach((byte) => put(byte, 8));
  put(0, Math.min(4, room[index] * 8 - bits.length));
  // The pictures' own library fills up a byte that is whole already with eight zeros; readers skip what follows the text.
  put(0, Math.min(8 - (bits.length % 8), room[index] * 8 - bits.length));
  for (let pad = 0xec; bits.length < room[index] * 8; pad ^= 0xec ^ 0x11) put(pad, 8);
  const words = Array.from({ length: room[index] }, (_, at) => parseInt(bits.slice(at * 8, at * 8 + 8).join(""), 2));

  const [size, ...groups] = QR_BLOCKS[index];
  const blocks = [];
  for (let group = 0, at = 0; group < groups.length; group += 2) {
    for (let count = 0; count < groups[group]; count++, at += groups[group + 1]) blocks.push(words.slice(at, at + groups[group + 1]));
  }
  const checks = blocks.map((block) => correction(block, size));
  const stream = [];
  for (const list of [blocks, checks]) {
    for (let at = 0; at < Math.max(...list.map((block) => block.length)); at++) {
      for (const block of list) if (at < block.length) stream.push(block[at]);
    }
  }
  return place(index, stream);
}

function place(index, stream) {
  const side = 21 + 4 * index;
  const rows = Array.from({ length: side }, () => new Array(side).fill(null)); // null: free for data
  const square = (x, y, radius, dark) => {
    for (let dy = -radius; dy <= radius; dy++) {
      for (let dx = -radius; dx <= radius; dx++) {
        if (rows[y + dy]?.[x + dx] !== undefined) rows[y + dy][x + dx] = dark(Math.max(Math.abs(dx), Math.abs(dy)));
      }
    }
  };
  for (const [x, y] of [[3, 3], [side - 4, 3], [3, side - 4]]) square(x, y, 4, (ring) => ring !== 2 && ring !== 4);
  for (let at = 8; at < side - 8; at++) rows[6][at] = rows[at][6] = at % 2 === 0;
  const centres = QR_ALIGNED[index];
  const last = centres[centres.length - 1];
  for (const y of centres) {
    for (const x of centres) {
      const corner = (x === 6 && y === 6) || (x === 6 && y === last) || (x === last && y === 6);
      if (!corner) square(x, y, 2, (ring) => ring !== 1);
    }
  }
  const format = (remainder(0, 10, 0x537) | 0) ^ 0x5412; // error correction M is 00, mask 0 is 000
  for (let at = 0; at < 15; at++) {
    const dark = ((format >> at) & 1) === 1;
    rows[at < 6 ? at : at < 8 ? at + 1 : side - 15 + at][8] = dark;
    rows[8][at < 8 ? side - 1 - at : at === 8 ? 7 : 14 - at] = dark;
  }
  rows[side - 8][8] = true;
  if (index >= 6) {
    const version = index + 1;
    const code = (version << 12) | remainder(version, 12, 0x1f25);
    for (let at = 0; at < 18; at++) {
      const [x, y] = [Math.floor(at / 3), side - 11 + (at % 3)];
      rows[x][y] = rows[y][x] = ((code >> at) & 1) === 1;
    }
  }
  let next = 0;
  for (let right = side - 1, up = true; right > 0; right -= 2, up = !up) {
    if (right === 6) right = 5; // the column of the timing pattern
    for (let step = 0; step < side; step++) {
      const y = up ? side - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (rows[y][x] !== null) continue;
        const bit = ((stream[next >> 3] ?? 0) >> (7 - (next & 7))) & 1;
        rows[y][x] = (bit === 1) !== ((x + y) % 2 === 0);
        next++;
      }
    }
  }
  return rows;
}
