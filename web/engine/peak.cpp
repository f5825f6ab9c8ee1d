// What this machine's vectors reach in this browser: the ruler for the attention timings.
#include "web_engine.h"

#include <algorithm>
#include <chrono>

namespace {

typedef float F4 __attribute__((vector_size(16)));

// Independent chains hide the latency of each.
constexpr int kChains = 12;
constexpr int kSteps = 200'000;

}  // namespace

double webPeak(void) {
    F4 sums[kChains];
    for (int c = 0; c < kChains; ++c) sums[c] = F4{0.1F, 0.2F, 0.3F, 0.4F} * float(c + 1);
    const F4 factor = {0.999F, 0.998F, 0.997F, 0.996F}, term = {0.001F, 0.002F, 0.003F, 0.004F};
    double best = 1e30;
    for (int run = 0; run < 5; ++run) {
        const auto start = std::chrono::steady_clock::now();
        for (int step = 0; step < kSteps; ++step)
            for (int c = 0; c < kChains; ++c) {
#if defined(__wasm_relaxed_simd__)
                sums[c] = __builtin_wasm_relaxed_madd_f32x4(sums[c], factor, term);
#else
                sums[c] = sums[c] * factor + term;
#endif
            }
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        best = std::min(best, seconds.count());
    }
    float used = 0;
    for (const F4& sum : sums) used += sum[0] + sum[1] + sum[2] + sum[3];
    // The sum is finite: reading it keeps the loop.
    return used < 1e30F ? 2.0 * 4 * kChains * kSteps / best : 0;
}
