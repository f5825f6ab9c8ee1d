// Checks that the page's own computations while drawing (numbers as text, positions in a colormap) agree with the
// engine's inspection library. Run through `npm test`; needs `npm run build` first.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { openEngine } from "../tools/engine.mjs";
import { pageModules } from "./page_modules.mjs";
import { readsPositive } from "./support.mjs";

let engine, page;

before(async () => {
    engine = await openEngine();
    page = await pageModules("page/format.ts", "page/colors.ts");
});

// A known sequence, so that a failure comes again.
function* random(count) {
    let state = 123456789;
    for (let i = 0; i < count; ++i) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        yield state / 2 ** 32;
    }
}

function* values() {
    yield* [
        0,
        -0,
        1,
        -1,
        0.5,
        -0.00001,
        1e-30,
        99999.99999,
        100000,
        123456.789,
        1e15,
        Infinity,
        -Infinity,
        NaN,
    ];
    // Exact halves at each number of decimals: the even digit wins.
    for (let power = 1; power <= 20; ++power)
        for (const odd of [1, 3, 5, 7, 9, 11, 27, 1001]) {
            yield odd / 2 ** power;
            yield -odd / 2 ** power;
        }
    for (const x of random(3000)) {
        yield Math.fround(x);
        yield Math.fround((x - 0.5) * 10 ** (x * 20 - 12));
    }
}

test("names of tokens and formats of columns", () => {
    assert.deepEqual(page.indexed(["a", "b", "a", "c"]), ["a₀", "b", "a₂", "c"]);
    const long = page.indexed(Array.from({ length: 1025 }, () => "x"));
    assert.equal(long[1024], "x₁₀₂₄");
    assert.equal(page.indexOf("x₁₀₂₄") + page.indexOf("3"), "₁₀₂₄");
    const written = (values) => values.map(page.column(values));
    assert.deepEqual(written([0.2601, -0.002457, 0]), ["0.26010", "−0.00246", "0.00000"]);
    assert.deepEqual(written([0.25, 12.5]), ["0.2500", "12.5000"]);
    assert.deepEqual(written([0.25, 1e-7, 0, -Infinity]), ["2.500e−01", "1.000e−07", "0", "−∞"]);
    assert.deepEqual(written([0, 0]), ["0.0000", "0.0000"]);
});

test("numbers as text", () => {
    const ascii = (text) => text.replaceAll("−", "-").replace("∞", "inf").replace("NaN", "nan");
    for (const value of values())
        for (const decimals of [2, 3, 4]) {
            assert.equal(
                ascii(page.fixed(value, decimals)),
                engine.UTF8ToString(engine._webNumber(1, value, decimals)),
                `fixed(${value}, ${decimals})`,
            );
            assert.equal(
                ascii(page.number(value, decimals)),
                engine.UTF8ToString(engine._webNumber(0, value, decimals)),
                `number(${value}, ${decimals})`,
            );
        }
});

test("places on a colormap", () => {
    for (const [low, high] of [
        [0, 1],
        [1e-5, 0.5],
        [0.25, 0.25],
        [2, 100],
    ])
        for (const x of random(500)) {
            const value = low + (x * 1.4 - 0.2) * (high - low || 1);
            assert.equal(
                page.placeOf(low, high, false, value),
                engine._webColorPlace(0, low, high, value),
                `linear ${low}..${high}: ${value}`,
            );
            // Logarithms of two libraries differ in the last bits.
            if (low > 0)
                assert.ok(
                    Math.abs(
                        page.placeOf(low, high, true, value) - engine._webColorPlace(1, low, high, value),
                    ) < 1e-13,
                    `logarithmic ${low}..${high}: ${value}`,
                );
            // A signed matrix: the same distance on both sides of 0.
            assert.ok(
                Math.abs(
                    page.placeOf(-high, high, false, value - high / 2) -
                        engine._webColorPlace(2, -high, high, value - high / 2),
                ) < 1e-12,
            );
        }
});

test("every colormap of the page is a table of the engine", () => {
    for (const { name, dark, key } of page.allTables) {
        const text = engine.stringToNewUTF8(name),
            at = engine._webColorTable(text, dark ? 1 : 0);
        const table = engine.HEAPU8.slice(at, at + 768);
        engine._free(text);
        if (name !== "grey")
            assert.notDeepEqual(
                table.slice(0, 3),
                Uint8Array.of(0x0a, 0x0a, 0x0a),
                `${key} is unknown to the engine, which gave grey`,
            );
    }
});

test("a measured time or rate, however short or slow, reads as the number that it is", () => {
    for (let exponent = -9; exponent < 5; exponent += 0.01) {
        const value = 10 ** exponent,
            time = page.duration(1000 * value),
            unit = { ns: 1e-9, µs: 1e-6, ms: 1e-3, s: 1 }[time.split(" ")[1]];
        assert.ok(readsPositive(time) && Math.abs((parseFloat(time) * unit) / value - 1) < 0.06, time);
        assert.ok(readsPositive(page.rate(value)), page.rate(value));
    }
    assert.ok(["1.0 µs", "10 µs", "0.049"].every(readsPositive));
    assert.ok(!["0.0 µs", "0 ms", "NaN", "Infinity", ""].some(readsPositive));
});

test("the place of a weight in its row is said in English", () => {
    const said = (n) => page.place(n - 1, 1000);
    assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 31, 101, 111, 112, 122, 1000].map(said), [
        "highest of 1000",
        "second highest of 1000",
        "third highest of 1000",
        ...[
            "4th",
            "11th",
            "12th",
            "13th",
            "21st",
            "22nd",
            "23rd",
            "31st",
            "101st",
            "111th",
            "112th",
            "122nd",
        ].map((nth) => `${nth} highest of 1000`),
        "lowest of 1000",
    ]);
    assert.equal(page.place(0, 1), "the only visible key");
});
