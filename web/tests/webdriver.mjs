// Firefox and WebKit, as Debian packages them, by WebDriver: Firefox implements it itself (Marionette, JSON over a
// socket), WebKitGTK has a small server (HTTP). Playwright drives both only with its own builds.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const firefox = [process.env.FOVEA_FIREFOX, "/usr/bin/firefox-esr", "/usr/bin/firefox"].find(
    (path) => path && existsSync(path),
);
const webkitServer = ["/usr/bin/WebKitWebDriver"].find((path) => existsSync(path));
const miniBrowser = ["x86_64", "aarch64"]
    .map((cpu) => `/usr/lib/${cpu}-linux-gnu/webkit2gtk-4.1/MiniBrowser`)
    .find((path) => existsSync(path));
const display = existsSync("/usr/bin/Xvfb") ? "/usr/bin/Xvfb" : undefined;

const elementKey = "element-6066-11e4-a52e-4f735466cecf";
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Starts a program in a new process group and a new folder; `stop` ends all of it.
function started(program, args, env = {}) {
    const child = spawn(program, args, { stdio: "ignore", detached: true, env: { ...process.env, ...env } });
    const gone = new Promise((done) => child.once("exit", done));
    return {
        child,
        stop: async () => {
            try {
                process.kill(-child.pid, "SIGKILL");
            } catch {
                /* ended by itself */
            }
            await gone;
        },
    };
}

const freePort = () =>
    new Promise((resolve) => {
        const probe = createServer().listen(0, "127.0.0.1", () => {
            const { port } = probe.address();
            probe.close(() => resolve(port));
        });
    });

const refusal = (ms) =>
    new Promise((_, fail) => setTimeout(fail, ms, new Error(`no answer for ${ms / 1000} s`)).unref());

async function until(what, test) {
    for (const end = Date.now() + 90_000; Date.now() < end; await pause(50)) {
        const found = await test();
        if (found) return found;
    }
    throw new Error(`${what} did not come within 90 s`);
}

// Firefox's own protocol: "length:[0, id, command, parameters]", answered by "length:[1, id, error, result]".
class Marionette {
    static async open(profile) {
        writeFileSync(
            join(profile, "user.js"),
            [
                ["marionette.port", 0],
                ["app.update.disabledForTesting", true],
                ["browser.shell.checkDefaultBrowser", false],
                ["datareporting.policy.dataSubmissionEnabled", false],
                ["toolkit.telemetry.enabled", false],
                ["ui.prefersReducedMotion", 1],
            ]
                .map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`)
                .join(""),
        );
        const self = new Marionette();
        self.program = started(firefox, ["--marionette", "--headless", "--no-remote", "--profile", profile], {
            MOZ_CRASHREPORTER_DISABLE: "1",
            HOME: profile,
        });
        const portFile = join(profile, "MarionetteActivePort");
        const port = await until(
            "Firefox",
            () => existsSync(portFile) && Number(readFileSync(portFile, "utf8")),
        );
        self.socket = connect(port, "127.0.0.1");
        self.waiting = new Map();
        self.nextId = 1;
        let rest = Buffer.alloc(0);
        await new Promise((done, fail) => {
            self.socket.on("error", fail);
            self.socket.on("data", (bytes) => {
                rest = Buffer.concat([rest, bytes]);
                for (let colon; (colon = rest.indexOf(58)) > 0;) {
                    const end = colon + 1 + Number(rest.subarray(0, colon));
                    if (rest.length < end) break;
                    const message = JSON.parse(rest.subarray(colon + 1, end));
                    rest = rest.subarray(end);
                    if (!Array.isArray(message)) {
                        done();
                        continue;
                    } // the greeting
                    const [, id, error, result] = message,
                        { resolve, reject } = self.waiting.get(id);
                    if (error) reject(new Error(error.message));
                    else resolve(result);
                }
            });
        });
        const { capabilities } = await self.send("NewSession", {});
        self.version = `${capabilities.browserName} ${capabilities.browserVersion}`;
        await self.send("SetWindowRect", { width: 1440, height: 1000 });
        return self;
    }
    send(command, parameters) {
        return new Promise((resolve, reject) => {
            const text = JSON.stringify([0, this.nextId, `WebDriver:${command}`, parameters]);
            this.waiting.set(this.nextId++, { resolve, reject });
            this.socket.write(`${Buffer.byteLength(text)}:${text}`);
        });
    }
    async close() {
        this.socket.destroy();
        await this.program.stop();
    }
}

// WebKitGTK's server: each command is a request below the session's address. Its window needs a display.
class WebKit {
    static paths = {
        Navigate: "url",
        ExecuteAsyncScript: "execute/async",
        FindElement: "element",
        SetTimeouts: "timeouts",
        Back: "back",
        Refresh: "refresh",
        TakeScreenshot: "screenshot",
    };

    static async open(folder) {
        const self = new WebKit(),
            port = await freePort();
        mkdirSync(join(folder, "run"), { mode: 0o700 });
        // -displayfd: a free number of the display's own choice, written to a pipe.
        const x = spawn(display, ["-displayfd", "3", "-screen", "0", "1480x1100x24", "-nolisten", "tcp"], {
            stdio: ["ignore", "ignore", "ignore", "pipe"],
            detached: true,
        });
        const xGone = new Promise((done) => x.once("exit", done));
        self.stopDisplay = async () => {
            try {
                process.kill(-x.pid, "SIGKILL");
            } catch {
                /* ended by itself */
            }
            await xGone;
        };
        const number = await new Promise((done, fail) => {
            x.stdio[3].once("data", (bytes) => done(String(bytes).trim()));
            x.once("exit", () => fail(new Error("Xvfb ended")));
        });
        self.program = started(webkitServer, [`--port=${port}`], {
            DISPLAY: `:${number}`,
            WAYLAND_DISPLAY: "",
            HOME: folder,
            XDG_RUNTIME_DIR: join(folder, "run"),
            GDK_BACKEND: "x11",
            LIBGL_ALWAYS_SOFTWARE: "1",
            WEBKIT_DISABLE_DMABUF_RENDERER: "1",
            NO_AT_BRIDGE: "1",
        });
        self.base = `http://127.0.0.1:${port}`;
        await until("WebKit's server", () =>
            fetch(`${self.base}/status`).then(
                () => true,
                () => false,
            ),
        );
        const { sessionId, capabilities } = await self.request("POST", "/session", {
            capabilities: {
                alwaysMatch: {
                    "webkitgtk:browserOptions": {
                        binary: miniBrowser,
                        args: ["--automation", "--geometry=1440x1000"],
                    },
                },
            },
        });
        self.base += `/session/${sessionId}`;
        self.version = `${capabilities.browserName} ${capabilities.browserVersion}`;
        return self;
    }
    async request(method, path, body) {
        const response = await fetch(this.base + path, {
            method,
            headers: { "content-type": "application/json" },
            body: body && JSON.stringify(body),
        });
        const { value } = await response.json();
        if (!response.ok) throw new Error(value.message || value.error);
        return value;
    }
    async send(command, parameters) {
        if (command === "TakeScreenshot") return { value: await this.request("GET", "/screenshot") };
        if (command.startsWith("Element")) {
            const { id, ...rest } = parameters,
                what = { ElementClick: "click", ElementClear: "clear", ElementSendKeys: "value" }[command];
            return { value: await this.request("POST", `/element/${id}/${what}`, rest) };
        }
        return { value: await this.request("POST", `/${WebKit.paths[command]}`, parameters) };
    }
    async close() {
        await this.request("DELETE", "").catch(() => {});
        await this.program.stop();
        await this.stopDisplay();
    }
}

export const browsers = [
    {
        name: "Firefox",
        missing: firefox ? null : "no Firefox found (Debian: firefox-esr; or set FOVEA_FIREFOX)",
        open: Marionette.open,
    },
    {
        name: "WebKit",
        missing:
            !webkitServer || !miniBrowser
                ? "no WebKitWebDriver found (Debian: webkit2gtk-driver)"
                : !display
                  ? "no Xvfb for WebKit's window"
                  : null,
        open: WebKit.open,
    },
];

// One window of a browser.
export class Driven {
    static async open(browser) {
        const self = new Driven();
        self.folder = mkdtempSync(join(tmpdir(), "fovea-driven-"));
        self.driver = await browser.open(self.folder);
        await self.driver.send("SetTimeouts", { script: 60_000, pageLoad: 60_000 });
        return self;
    }
    // Loads an empty page first, because a change after the # loads nothing. A browser may answer before the new page
    // is there, and then still describes the old one.
    async goto(url) {
        for (const to of ["about:blank", url]) await this.driver.send("Navigate", { url: to });
        await this.wait(
            url,
            (to) => location.href.split("#")[0] === to && document.readyState === "complete",
            url.split("#")[0],
        );
    }
    back() {
        return this.driver.send("Back", {});
    }
    // Runs `use(...args)` in the page and waits for what it promises.
    async evaluate(use, ...args) {
        const script = `const done = arguments[arguments.length - 1]; Promise.resolve().then(() => (${use})(...Array.prototype.slice.call(arguments, 0, -1))).then((value) => done({ value }), (error) => done({ error: String(error) }));`;
        const { value } = await this.driver.send("ExecuteAsyncScript", { script, args });
        if (value.error) throw new Error(value.error);
        return value.value;
    }
    // An answer from a page that is being left counts as no, and so does a missing one.
    wait(what, test, ...args) {
        let last;
        return until(what, () =>
            Promise.race([this.evaluate(test, ...args), refusal(10_000)]).catch((error) => {
                last = error;
            }),
        ).catch((error) => {
            throw last ? new Error(`${error.message} (${last.message})`) : error;
        });
    }
    async element(selector) {
        const found = await this.driver.send("FindElement", { using: "css selector", value: selector });
        return (found.value ?? found)[elementKey];
    }
    async click(selector) {
        await this.driver.send("ElementClick", { id: await this.element(selector) });
    }
    async type(selector, text, { clear = false } = {}) {
        const id = await this.element(selector);
        if (clear) await this.driver.send("ElementClear", { id });
        await this.driver.send("ElementSendKeys", { id, text });
    }
    async screenshot() {
        return Buffer.from((await this.driver.send("TakeScreenshot", { full: false })).value, "base64");
    }
    async close() {
        await this.driver.close();
        rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    }
}
