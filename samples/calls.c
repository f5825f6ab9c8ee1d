/* Decodes a short sequence with a KV cache, token by token, and compares it with one causal call over the whole sequence.
 * The functions to copy are in calls.h. */
#include "calls.h"
#include "cpu.h"

#include <math.h>

enum { kHeads = 2, kDim = 16, kTokens = 12, kCapacity = 16, kFloats = kHeads * kTokens * kDim };

int main(void) {
    FoveaDiag diag = foveaDiag();
    const FoveaDeviceProperties properties = processor(1);
    static float q[kFloats], k[kFloats], v[kFloats], whole[kFloats];
    static float k_cache[kHeads * kCapacity * kDim], v_cache[kHeads * kCapacity * kDim];
    for (uint32_t n = 0; n < kFloats; ++n) q[n] = number(0, n), k[n] = number(1, n), v[n] = number(2, n);
    require(attend_once(&properties, kHeads, kHeads, kDim, kTokens, kTokens, FOVEA_ALIGN_TOP_LEFT, NULL, q, k, v, whole,
                        &diag) == FOVEA_OK,
            diag.text);

    double worst = 0;
    for (uint32_t token = 0; token < kTokens; ++token) {
        float rows[3][kHeads * kDim], o[kHeads * kDim];
        for (uint32_t h = 0; h < kHeads; ++h)
            for (uint32_t d = 0; d < kDim; ++d) {
                const uint32_t from = (h * kTokens + token) * kDim + d, to = h * kDim + d;
                rows[0][to] = q[from], rows[1][to] = k[from], rows[2][to] = v[from];
            }
        require(append_and_attend(&properties, kHeads, kDim, token, 1, kCapacity, rows[0], rows[1], rows[2], k_cache,
                                  v_cache, o, &diag) == FOVEA_OK,
                diag.text);
        for (uint32_t h = 0; h < kHeads; ++h)
            for (uint32_t d = 0; d < kDim; ++d)
                worst = fmax(worst, fabs((double)o[h * kDim + d] - whole[(h * kTokens + token) * kDim + d]));
    }
    printf("%d tokens one by one and in one call on %s: largest difference %.2g\n", kTokens,
           foveaCpuTargetName(properties.cpu_target), worst);
    require(worst < 1e-6, "the results differ");
    return 0;
}
