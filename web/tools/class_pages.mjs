// Writes the pages of web/src/static/class_pages.ts. A preview needs a whole address: FOVEA_SITE=https://host/path/ gives it; without
// it previews are named by a relative one, which some readers of links take and others do not.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";

function png({ width, height, rgb }) {
    const chunk = (name, data) => {
        const body = Buffer.concat([Buffer.from(name), data]),
            whole = Buffer.alloc(body.length + 8);
        whole.writeUInt32BE(data.length, 0);
        body.copy(whole, 4);
        whole.writeUInt32BE(crcOf(body), body.length + 4);
        return whole;
    };
    const header = Buffer.alloc(13);
    header.writeUInt32BE(width, 0);
    header.writeUInt32BE(height, 4);
    header.set([8, 2, 0, 0, 0], 8); // 8 bits, red green blue
    const rows = Buffer.alloc(height * (1 + 3 * width)); // each begins with 0: no filter
    for (let y = 0; y < height; ++y)
        rows.set(rgb.subarray(3 * width * y, 3 * width * (y + 1)), y * (1 + 3 * width) + 1);
    return Buffer.concat([
        Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
        chunk("IHDR", header),
        chunk("IDAT", deflateSync(rows, { level: 9 })),
        chunk("IEND", Buffer.alloc(0)),
    ]);
}

// As PNG has it (ISO 3309).
function crcOf(bytes) {
    let crc = ~0;
    for (const byte of bytes) {
        crc ^= byte;
        for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc >>> 0;
}

const quoted = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

export function writeClassPages(
    pages,
    { out, styleFile, language, file, label, site = process.env.FOVEA_SITE ?? "" },
) {
    const links = pages
        .map(
            ({ path, title }) =>
                `<li><a href="../../${path}/${file === "index.html" ? "" : file}">${quoted(title)}</a></li>`,
        )
        .join("");
    for (const { path, title, about, html, picture } of pages) {
        const folder = join(out, path);
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, "preview.png"), png(picture));
        const image = site ? new URL(`${path}/preview.png`, site).href : "preview.png";
        writeFileSync(
            join(folder, file),
            `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${quoted(title)}: Fovea</title>
<meta name="description" content="${quoted(about)}">
<meta property="og:type" content="article">
<meta property="og:title" content="${quoted(title)}">
<meta property="og:description" content="${quoted(about)}">
<meta property="og:image" content="${image}">
<meta property="og:image:width" content="${picture.width}">
<meta property="og:image:height" content="${picture.height}">
<meta name="twitter:card" content="summary_large_image">
<link rel="icon" href="../../icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="../../${styleFile}">
</head>
<body>
<main class="wrap class-page">
${html}
</main>
<nav class="wrap class-links" aria-label="${label}"><ol>${links}</ol></nav>
</body>
</html>
`,
        );
    }
}
