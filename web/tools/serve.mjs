// Serves build/web with the headers that let a page use threads. PORT chooses the port; --plain leaves the headers out.
import { createServer } from "node:http";
import { createReadStream, statSync } from "node:fs";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const types = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css",
    ".wasm": "application/wasm", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json",
};

// Serves `folder` under `prefix`; with `isolated`, as a host would that allows threads.
export function serve(folder, { port = 0, isolated = true, prefix = "/" } = {}) {
    const server = createServer((request, response) => {
        const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
        const inside = normalize(path.startsWith(prefix) ? path.slice(prefix.length) : "\0");
        const file = join(folder, inside === "." || inside === "" || inside.endsWith("/") ? join(inside, "index.html") : inside);
        let size;
        try {
            if (inside.startsWith("..") || inside.includes("\0")) throw new Error("outside");
            size = statSync(file).isFile() ? statSync(file).size : undefined;
        } catch { /* answered below */ }
        if (size === undefined) return response.writeHead(404).end("not found\n");
        const headers = { "content-type": types[extname(file)] ?? "application/octet-stream", "content-length": size, "cache-control": "no-cache" };
        if (isolated) Object.assign(headers, { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" });
        response.writeHead(200, headers);
        createReadStream(file).pipe(response);
    });
    return new Promise((resolve) => server.listen(port, "127.0.0.1", () =>
        resolve({ server, url: `http://localhost:${server.address().port}${prefix}` })));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "build", "web");
    const isolated = !process.argv.includes("--plain");
    const { url } = await serve(folder, { port: Number(process.env.PORT ?? 8080), isolated });
    console.log(`Fovea is at ${url}  (Ctrl+C stops)`);
}
