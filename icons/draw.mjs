// Draws the tray and application icons: SVG sources beside the pictures made from them.
//
//   node icons/draw.mjs            (needs rsvg-convert, from librsvg)
//
// Tray icons are drawn per size on the pixel grid and never scaled from one master; the "@2x" pictures are the
// same drawing at twice the density. Output is a function of this file alone: run it twice, nothing changes.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

// One silhouette, a keep with a keyhole. m: merlons, t/c/d: top of merlons, of the crown, of the body,
// C/B: left and right of crown and body, b: bottom, k: keyhole (x, y, radius, half stem, stem end), w: line when hollow.
const GRID = {
  16: { m: [[3, 5], [7, 9], [11, 13]], t: 1, c: 3, d: 6, C: [3, 13], B: [4, 12], b: 15, k: [8, 9.5, 2, 1, 13], w: 1 },
  22: { m: [[4, 7], [9, 13], [15, 18]], t: 2, c: 5, d: 9, C: [4, 18], B: [6, 16], b: 20, k: [11, 13, 2.5, 1.25, 17.5], w: 1.5 },
  32: { m: [[6, 10], [14, 18], [22, 26]], t: 2, c: 6, d: 12, C: [6, 26], B: [8, 24], b: 30, k: [16, 18.5, 3.75, 1.75, 26], w: 2 },
};
const SIZES = [16, 22, 32];
const per = (size, ...values) => values[SIZES.indexOf(size)];

const COLOURS = {
  dark: { fg: "#f2f2f0", needs: ["#f0c35f", "#2a1d00"], error: ["#ff8f85", "#330806"], running: ["#74d3ac"], quitting: ["#f2f2f0"] },
  light: { fg: "#2b2d30", needs: ["#8a5a00", "#ffffff"], error: ["#b3261e", "#ffffff"], running: ["#17684e"], quitting: ["#2b2d30"] },
  // The system colours a template: a mark is cut out of its badge.
  template: { fg: "#000000", needs: ["#000000"], error: ["#000000"], running: ["#000000"], quitting: ["#000000"] },
};

function keep(size, { hollow = false, key = true } = {}) {
  const { m, t, c, d, C, B, b, k, w } = GRID[size];
  let p = `M${C[0]} ${t}`;
  m.forEach(([, right], i) => {
    p += i < 2 ? `H${right}V${c}H${m[i + 1][0]}V${t}` : `H${right}`;
  });
  p += `V${d}H${B[1]}V${b}H${B[0]}V${d}H${C[0]}Z`;
  if (hollow) {
    p += `M${C[0] + w} ${c + w}H${C[1] - w}V${d - w}H${B[1] - w}V${b - w}H${B[0] + w}V${d - w}H${C[0] + w}Z`;
  } else if (key) {
    const [x, y, r, s, end] = k;
    p += `M${x - s} ${(y + Math.sqrt(r * r - s * s)).toFixed(2)}A${r} ${r} 0 1 1 ${x + s} ${(y + Math.sqrt(r * r - s * s)).toFixed(2)}V${end}H${x - s}Z`;
  }
  return p;
}

// At 16 px digits are a 3×5 bitmap; above, strokes on a 2×4 box.
const BITS = {
  1: "010110010010111", 2: "110001010100111", 3: "110001010001110", 4: "101101111001001", 5: "111100110001110",
  6: "011100111101111", 7: "111001010010010", 8: "111101111101111", 9: "111101111001110", "+": "000010111010000",
};
const STROKES = {
  1: "M.3.8 1.2 0V4", 2: "M0 1C0 .4.4 0 1 0s1 .4 1 1C2 2 0 2.9 0 4H2", 3: "M0 0H2L.9 1.5C1.6 1.5 2 2 2 2.7 2 3.5 1.6 4 1 4 .5 4 0 3.7 0 3.2",
  4: "M1.5 4V0L0 2.8H2.1", 5: "M1.9 0H.2L0 1.9C.3 1.6.6 1.5 1 1.5c.6 0 1 .5 1 1.2C2 3.5 1.6 4 1 4 .5 4 0 3.7 0 3.3",
  6: "M1.7 0C.7.7 0 1.7 0 2.8 0 3.5.4 4 1 4s1-.5 1-1.2S1.6 1.7 1 1.7 0 2.2 0 2.8", 7: "M0 0H2L.7 4",
  8: "M1 1.8C.4 1.8.1 1.4.1.9.1.3.5 0 1 0s.9.3.9.9-.3.9-.9.9C.4 1.8 0 2.2 0 2.9 0 3.6.4 4 1 4s1-.4 1-1.1S1.6 1.8 1 1.8",
  9: "M.3 4C1.3 3.3 2 2.3 2 1.2 2 .5 1.6 0 1 0S0 .5 0 1.2s.4 1.1 1 1.1 1-.5 1-1.1", "+": "M.1 2H1.9M1 1.1V2.9",
};

function digits(size, text, cx, cy, colour) {
  if (size === 16) {
    const w = 4 * text.length - 1;
    const x = (cx - w / 2) % 1 ? Math.ceil(cx - w / 2 - 0.01) : cx - w / 2;
    const y = Math.floor(cy - 2.5);
    let d = "";
    [...text].forEach((ch, i) => [...BITS[ch]].forEach((bit, j) => {
      if (bit === "1") d += `M${x + i * 4 + (j % 3)} ${y + Math.floor(j / 3)}h1v1h-1z`;
    }));
    return `<path fill="${colour}" d="${d}"/>`;
  }
  const unit = per(size, 0, 1.35, 2.1);
  const line = per(size, 0, 1.5, 2.1);
  const step = 2 * unit + line + 0.7;
  const left = cx - (2 * unit + step * (text.length - 1)) / 2;
  return [...text].map((ch, i) => {
    const x = left + i * step + (ch === "1" ? -0.15 * unit : 0);
    return `<path transform="translate(${x.toFixed(2)} ${(cy - 2 * unit).toFixed(2)}) scale(${unit})" d="${STROKES[ch]}" fill="none" stroke="${colour}" stroke-width="${(line / unit).toFixed(3)}" stroke-linecap="round" stroke-linejoin="round"/>`;
  }).join("");
}

// -> the badge, the hole that keeps it clear of the keep, and its mark.
function badge(size, state, count) {
  const gap = per(size, 1, 1.5, 2);
  const bevel = per(size, 1, 1.5, 2);
  const h = per(size, 9, 12, 17);
  const y = size - h;
  const none = () => "";
  if (state === "needs") {
    const text = count > 9 ? "9+" : String(count);
    const w = text.length === 1 ? h : per(size, 11, 16, 22);
    const x = size - w;
    return {
      shape: (c) => `<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="${h / 2}" fill="${c}"/>`,
      hole: `<rect x="${x - gap}" y="${y - gap}" width="${w + 2 * gap}" height="${h + 2 * gap}" rx="${h / 2 + gap}" fill="#000"/>`,
      mark: (c) => digits(size, text, x + w / 2, y + h / 2, c),
    };
  }
  if (state === "error") {
    const w = per(size, 11, 14, 20);
    const x = size - w;
    const cx = x + w / 2;
    const d = `M${cx} ${y + bevel / 2}L${size - bevel / 2} ${size - bevel / 2}H${x + bevel / 2}Z`;
    const mark = size === 16
      ? (c) => `<path fill="${c}" d="M${cx - 0.5} ${y + 3}h1v3h-1zM${cx - 0.5} ${y + 7}h1v1h-1z"/>`
      : (c) => `<path stroke="${c}" stroke-width="${per(size, 0, 1.5, 2)}" stroke-linecap="round" d="M${cx} ${(y + h * 0.36).toFixed(2)}V${(y + h * 0.58).toFixed(2)}M${cx} ${(y + h * 0.8).toFixed(2)}v.01"/>`;
    return { ...rounded(d, bevel, gap), mark };
  }
  if (state === "running") {
    const x = size - per(size, 7, 9.5, 14);
    const d = `M${x + bevel / 2} ${y + bevel / 2}L${size - bevel / 2} ${y + h / 2}L${x + bevel / 2} ${size - bevel / 2}Z`;
    return { ...rounded(d, bevel, gap), mark: none };
  }
  if (state === "running-subtle") {
    const r = per(size, 2.5, 3.5, 5);
    const c0 = size - r - 0.5;
    return {
      shape: (c) => `<circle cx="${c0}" cy="${c0}" r="${r}" fill="${c}"/>`,
      hole: `<circle cx="${c0}" cy="${c0}" r="${r + gap}" fill="#000"/>`,
      mark: none,
    };
  }
  const w = per(size, 7, 9, 14);
  const x = size - w;
  const neck = bevel * 0.45;
  return {
    shape: (c) => `<path d="M${x} ${y}H${size}V${y + bevel}L${x + w / 2 + neck} ${y + h / 2}L${size} ${size - bevel}V${size}H${x}V${size - bevel}L${x + w / 2 - neck} ${y + h / 2}L${x} ${y + bevel}Z" fill="${c}"/>`,
    hole: `<rect x="${x - gap}" y="${y - gap}" width="${w + 2 * gap}" height="${h + 2 * gap}" fill="#000"/>`,
    mark: none,
  };
}

const rounded = (d, bevel, gap) => ({
  shape: (c) => `<path d="${d}" fill="${c}" stroke="${c}" stroke-width="${bevel}" stroke-linejoin="round"/>`,
  hole: `<path d="${d}" fill="#000" stroke="#000" stroke-width="${bevel + 2 * gap}" stroke-linejoin="round"/>`,
});

const mask = (id, size, hole) =>
  `<mask id="${id}" maskUnits="userSpaceOnUse" x="0" y="0" width="${size}" height="${size}"><rect width="${size}" height="${size}" fill="#fff"/>${hole}</mask>`;

function tray(size, state, shade, count) {
  const colours = COLOURS[shade];
  // A badge beside half a keyhole would be noise.
  const body = keep(size, { hollow: state === "signed-out", key: state === "idle" || state === "running-subtle" });
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}" viewBox="0 0 ${size} ${size}">`;
  const wall = (extra) => `<path ${extra}fill="${colours.fg}" fill-rule="evenodd" d="${body}"/>`;
  if (state === "idle" || state === "signed-out") return `${head}${wall("")}</svg>\n`;
  const { shape, hole, mark } = badge(size, state, count);
  const [ground, ink] = colours[state.startsWith("running") ? "running" : state];
  const behind = `${mask("ring", size, hole)}${wall('mask="url(#ring)" ')}`;
  const front = ink ? shape(ground) + mark(ink) : `${mask("cut", size, mark("#000"))}<g mask="url(#cut)">${shape(ground)}</g>`;
  return `${head}${behind}${front}</svg>\n`;
}

const APP = '<svg xmlns="http://www.w3.org/2000/svg" width="512" height="512" viewBox="0 0 512 512"><rect x="16" y="16" width="480" height="480" rx="108" fill="#2b5078"/><path fill="#f1eee6" d="M120 96H184V152H224V96H288V152H328V96H392V248H360V416H152V248H120Z"/><path fill="#c9c5bb" d="M152 248H360V266H152Z"/><path fill="#c4850f" d="M236 314.5A40 40 0 1 1 276 314.5L286 372H226Z"/></svg>\n';
const APP_16 = '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16"><rect width="16" height="16" rx="3.5" fill="#2b5078"/><path fill="#f1eee6" d="M3 2H5V4H7V2H9V4H11V2H13V7H12V14H4V7H3Z"/><path fill="#c4850f" d="M7 11V10.73A2 2 0 1 1 9 10.73V13H7Z"/></svg>\n';

function render(svg, png, pixels) {
  execFileSync("rsvg-convert", ["-w", String(pixels), "-h", String(pixels), "-o", png, svg]);
  return readFileSync(png);
}

// Windows and macOS containers of PNG pictures.
function ico(pictures) {
  const head = Buffer.alloc(6 + 16 * pictures.length);
  head.writeUInt16LE(1, 2);
  head.writeUInt16LE(pictures.length, 4);
  let at = head.length;
  pictures.forEach(([px, png], i) => {
    const o = 6 + 16 * i;
    head.writeUInt8(px % 256, o);
    head.writeUInt8(px % 256, o + 1);
    head.writeUInt16LE(1, o + 4);
    head.writeUInt16LE(32, o + 6);
    head.writeUInt32LE(png.length, o + 8);
    head.writeUInt32LE(at, o + 12);
    at += png.length;
  });
  return Buffer.concat([head, ...pictures.map(([, png]) => png)]);
}

function icns(pictures) {
  const parts = pictures.map(([type, png]) => {
    const head = Buffer.alloc(8);
    head.write(type, 0, "latin1");
    head.writeUInt32BE(png.length + 8, 4);
    return Buffer.concat([head, png]);
  });
  const head = Buffer.alloc(8);
  head.write("icns", 0, "latin1");
  head.writeUInt32BE(8 + parts.reduce((n, p) => n + p.length, 0), 4);
  return Buffer.concat([head, ...parts]);
}

const states = ["idle", "running", "running-subtle", "error", "signed-out", "quitting"].map((s) => [s, s, 0]);
for (let n = 1; n <= 10; n++) states.push([`needs-${n > 9 ? "9plus" : n}`, "needs", n]);

for (const shade of Object.keys(COLOURS)) {
  const pngs = join(here, "tray", shade);
  const svgs = join(pngs, "svg");
  mkdirSync(svgs, { recursive: true });
  for (const size of SIZES) {
    for (const [name, state, count] of states) {
      const svg = join(svgs, `${name}-${size}.svg`);
      writeFileSync(svg, tray(size, state, shade, count));
      render(svg, join(pngs, `${name}-${size}.png`), size);
      render(svg, join(pngs, `${name}-${size}@2x.png`), size * 2);
    }
  }
}

const app = join(here, "turnkeep.svg");
const small = join(here, "turnkeep-16.svg");
writeFileSync(app, APP);
writeFileSync(small, APP_16);
writeFileSync(join(here, "turnkeep-symbolic.svg"), tray(16, "idle", "template", 0).replace("#000000", "currentColor"));
const picture = {};
for (const [name, px] of [["16x16", 16], ["32x32", 32], ["48x48", 48], ["64x64", 64], ["128x128", 128], ["128x128@2x", 256], ["icon", 512], ["icon@2x", 1024]]) {
  picture[px] = render(px === 16 ? small : app, join(here, `${name}.png`), px);
}
writeFileSync(join(here, "icon.ico"), ico([16, 32, 48, 64, 256].map((px) => [px, picture[px]])));
writeFileSync(join(here, "icon.icns"), icns([["icp4", picture[16]], ["icp5", picture[32]], ["icp6", picture[64]], ["ic07", picture[128]], ["ic08", picture[256]], ["ic09", picture[512]], ["ic10", picture[1024]]]));
