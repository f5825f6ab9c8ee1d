// Keeps the page working offline and, where a reader asked for it, gives it the headers that allow threads. Registered
// only on request. Engine files are kept as they are used: a reader needs one of the four, few need the trainer.
const version = "fovea-__VERSION__";
const files = __FILES__;
const isolate = new URL(self.location.href).searchParams.get("isolate") === "1";

self.addEventListener("install", (event) => {
    event.waitUntil(
        (async () => {
            const cache = await caches.open(version);
            await cache.addAll(["./", ...files]);
            await self.skipWaiting();
        })(),
    );
});

self.addEventListener("activate", (event) => {
    event.waitUntil(
        (async () => {
            for (const name of await caches.keys())
                if (name.startsWith("fovea-") && name !== version) await caches.delete(name);
            await self.clients.claim();
        })(),
    );
});

function withHeaders(response) {
    if (!isolate || response.type === "opaque") return response;
    const headers = new Headers(response.headers);
    headers.set("cross-origin-opener-policy", "same-origin");
    headers.set("cross-origin-embedder-policy", "require-corp");
    headers.set("cross-origin-resource-policy", "same-origin");
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

self.addEventListener("fetch", (event) => {
    const url = new URL(event.request.url);
    if (event.request.method !== "GET" || url.origin !== self.location.origin) return;
    event.respondWith(
        (async () => {
            const cache = await caches.open(version);
            const kept = await cache.match(event.request, {
                ignoreSearch: event.request.mode === "navigate",
            });
            if (kept) return withHeaders(kept);
            const fetched = await fetch(event.request);
            if (fetched.ok && /\/(engine|model|train)\//.test(url.pathname))
                await cache.put(event.request, fetched.clone());
            return withHeaders(fetched);
        })(),
    );
});
