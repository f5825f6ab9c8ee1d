// Principal components (Pearson, 1901) of a few wide rows: their positions along the two directions of the largest
// variance. By power iteration on the products of rows with each other (Gower, 1966), which are fewer than those of
// columns.
export function planeOf(data: Float32Array, width: number): { points: [number, number][]; share: number } {
    const count = data.length / width,
        mean = new Float64Array(width),
        rows = Array.from({ length: count }, (_, n) =>
            Float64Array.from(data.subarray(n * width, (n + 1) * width)),
        );
    for (const row of rows) row.forEach((x, c) => (mean[c] += x / count));
    for (const row of rows) row.forEach((_, c) => (row[c] -= mean[c]));
    const dot = (a: Float64Array, b: Float64Array) => {
            let sum = 0;
            for (let c = 0; c < a.length; ++c) sum += a[c] * b[c];
            return sum;
        },
        products = rows.map((row) => Float64Array.from(rows, (other) => dot(row, other))),
        all = products.reduce((sum, row, n) => sum + row[n], 0),
        axes: Float64Array[] = [];
    let held = 0;
    for (let axis = 0; axis < 2; ++axis) {
        // Starts with the longest row, so that the same words get the same places.
        let along = products.reduce((a, b, n) => (b[n] > a[products.indexOf(a)] ? b : a)).slice(),
            variance = 0;
        for (let step = 0; step < 100; ++step) {
            const length = Math.sqrt(dot(along, along));
            if (!(length > 0)) break; // nothing is left to differ in
            const unit = along.map((x) => x / length);
            along = Float64Array.from(products, (row) => dot(row, unit));
            variance = Math.sqrt(dot(along, along));
        }
        const unit = along.map((x) => (variance > 0 ? x / variance : 0));
        axes.push(unit.map((x) => x * Math.sqrt(variance)));
        held += variance;
        products.forEach((row, n) => row.forEach((_, m) => (row[m] -= variance * unit[n] * unit[m])));
    }
    return { points: Array.from(axes[0], (x, n) => [x, axes[1][n]]), share: all > 0 ? held / all : 1 };
}
