// Principal components (Pearson, 1901) of a few rows, by power iteration: the two directions in which they differ most.
export function planeOf(data: Float32Array, width: number): { points: [number, number][]; share: number } {
    const count = data.length / width,
        mean = Array.from({ length: width }, (_, c) => {
            let sum = 0;
            for (let n = 0; n < count; ++n) sum += data[n * width + c];
            return sum / count;
        }),
        rows = Array.from({ length: count }, (_, n) => mean.map((m, c) => data[n * width + c] - m)),
        dot = (a: number[], b: number[]) => a.reduce((sum, x, i) => sum + x * b[i], 0),
        all = rows.reduce((sum, row) => sum + dot(row, row), 0),
        places: number[][] = [];
    let held = 0;
    for (let axis = 0; axis < 2; ++axis) {
        // From the longest row, which no rule of chance draws: the same words lie in the same places.
        let direction = rows.reduce((a, b) => (dot(b, b) > dot(a, a) ? b : a));
        for (let step = 0; step < 100; ++step) {
            const next = Array<number>(width).fill(0);
            for (const row of rows) {
                const along = dot(row, direction);
                row.forEach((x, c) => (next[c] += along * x));
            }
            const length = Math.sqrt(dot(next, next));
            direction = next.map((x) => (length > 0 ? x / length : 0)); // 0: nothing is left to differ in
        }
        const along = rows.map((row) => dot(row, direction));
        places.push(along);
        held += dot(along, along);
        rows.forEach((row, n) => row.forEach((_, c) => (row[c] -= along[n] * direction[c])));
    }
    return { points: places[0].map((x, n) => [x, places[1][n]]), share: all > 0 ? held / all : 1 };
}
