// Serves build/web with the headers that let a page use threads. PORT chooses the port; --plain leaves the headers out.
import { createServer } from "node:http";
import { createReadStream, statSync } from "node:fs";
import { pipeline } from "node:stream";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const types = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
};

// A file that goes in the meantime, as a build's do, ends this answer and not the server.
const send = (file, response) => pipeline(createReadStream(file), response, () => {});

// Serves `folder` under `prefix`, compressed as hosts do; with `isolated`, as a host would that allows threads.
export function serve(folder, { port = 0, isolated = true, prefix = "/" } = {}) {
    const server = createServer((request, response) => {
        let path;
        try {
            path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
        } catch {
            return response.writeHead(400).end("not an address\n");
        }
        const inside = normalize(path.startsWith(prefix) ? path.slice(prefix.length) : "\0");
        const file = join(
            folder,
            inside === "." || inside === "" || inside.endsWith("/") ? join(inside, "index.html") : inside,
        );
        let size, changed;
        try {
            if (inside.startsWith("..") || inside.includes("\0")) throw new Error("outside");
            const facts = statSync(file);
            if (facts.isFile()) ({ size, mtimeMs: changed } = facts);
        } catch {
            /* answered below */
        }
        if (size === undefined) return response.writeHead(404).end("not found\n");
        // A name with a hash is that of one content.
        const lasting = /-[0-9A-Za-z]{8}(\.\w+$|\/)/.test(inside);
        const headers = {
            "content-type": types[extname(file)] ?? "application/octet-stream",
            "cache-control": lasting ? "public, max-age=31536000, immutable" : "no-cache",
        };
        if (isolated)
            Object.assign(headers, {
                "cross-origin-opener-policy": "same-origin",
                "cross-origin-embedder-policy": "require-corp",
            });
        // The build makes a brotli form of each file.
        const packed =
            /\bbr\b/.test(request.headers["accept-encoding"] ?? "") &&
            statSync(`${file}.br`, { throwIfNoEntry: false });
        if (packed && packed.mtimeMs >= changed) {
            response.writeHead(200, {
                ...headers,
                "content-encoding": "br",
                "content-length": packed.size,
                vary: "accept-encoding",
            });
            return send(`${file}.br`, response);
        }
        response.writeHead(200, { ...headers, "content-length": size });
        send(file, response);
    });
    return new Promise((resolve, reject) =>
        server
            .once("error", reject)
            .listen(port, "127.0.0.1", () =>
                resolve({ server, url: `http://localhost:${server.address().port}${prefix}` }),
            ),
    );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "build", "web");
    const isolated = !process.argv.includes("--plain");
    const port = Number(process.env.PORT ?? 8080);
    try {
        const { url } = await serve(folder, { port, isolated });
        console.log(`Fovea is at ${url}  (Ctrl+C stops)`);
    } catch (error) {
        const why =
            error.code === "EADDRINUSE"
                ? "another program has it"
                : error.code === "ERR_SOCKET_BAD_PORT"
                  ? "it must be 0 to 65535"
                  : error.message;
        console.error(`fovea: error: PORT ${process.env.PORT ?? port}: ${why}`);
        process.exitCode = 2;
    }
}
