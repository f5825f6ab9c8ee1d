/* A tree of drafts over a long KV cache, on the CPU: speculative decoding checks many continuations at once,
 * each draft sees the whole cache and its own forefathers (Miao et al., SpecInfer, 2024). A mask over all
 * keys has useful bytes only for the last few; here the cache is a call without a mask, the drafts' own keys
 * a small call with one, and foveaPlanMerge makes the two results one. No Vulkan.
 *
 * q and o are [heads, drafts, dim]; k and v [heads_kv, cache + drafts, dim], the drafts' rows after the cache's. */
#include "cpu.h"

#include <math.h>

enum { kHeads = 8, kHeadsKv = 2, kDim = 64, kCache = 8192, kDrafts = 64, kKeys = kCache + kDrafts, kRounds = 5 };
enum { kOut = kHeads * kDrafts * kDim, kRows = kHeads * kDrafts };

static float q[kOut], k[kHeadsKv * kKeys * kDim], v[kHeadsKv * kKeys * kDim];
static float whole[kOut], parts[2 * kOut], parts_lse[2 * kRows], merged[kOut], merged_lse[kRows];
static uint8_t tree[kDrafts * kDrafts], everything[kDrafts * kKeys];

/* Draft i continues draft (i - 1) / 2; draft 0 the cache. */
static int sees(int draft, int other) {
    while (draft > other) draft = (draft - 1) / 2;
    return draft == other;
}

/* Plans keys [first, first + count); the binding decides where the mask's bytes begin. */
static FoveaPlan plan_of(const FoveaDeviceProperties* properties, uint64_t count, int masked, int wants_lse) {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = 1;
    desc.heads_q = kHeads;
    desc.heads_kv = kHeadsKv;
    desc.dim_qk = desc.dim_v = kDim;
    desc.len_q = kDrafts;
    desc.len_kv = count;
    desc.k_strides = desc.v_strides = (FoveaStrides){kHeadsKv * kKeys * kDim, kKeys * kDim, kDim};
    desc.outputs = FOVEA_OUTPUT_O | (wants_lse ? FOVEA_OUTPUT_LSE : 0);
    if (masked) {
        desc.mask.present = 1;
        desc.mask.type = FOVEA_U8;
    }
    FoveaDiag diag = foveaDiag();
    FoveaPlan plan;
    require(foveaPlanAttention(properties, &desc, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    return plan;
}

static void attend(FoveaPlan plan, uint64_t first, uint8_t* mask, uint64_t mask_bytes, float* o, float* lse) {
    const uint64_t skipped = first * kDim * sizeof *k;
    FoveaHostBuffer call[FOVEA_BIND_COUNT] = {{0}};
    call[FOVEA_BIND_Q] = (FoveaHostBuffer){q, sizeof q};
    call[FOVEA_BIND_K] = (FoveaHostBuffer){k + first * kDim, sizeof k - skipped};
    call[FOVEA_BIND_V] = (FoveaHostBuffer){v + first * kDim, sizeof v - skipped};
    call[FOVEA_BIND_O] = (FoveaHostBuffer){o, sizeof whole};
    if (mask) call[FOVEA_BIND_MASK] = (FoveaHostBuffer){mask, mask_bytes};
    if (lse) call[FOVEA_BIND_LSE] = (FoveaHostBuffer){lse, sizeof merged_lse};
    run_plan(plan, call);
}

int main(void) {
    for (uint32_t n = 0; n < kOut; ++n) q[n] = 3 * number(0, n);
    for (uint32_t n = 0; n < kHeadsKv * kKeys * kDim; ++n) k[n] = number(1, n), v[n] = number(2, n);
    for (int i = 0; i < kDrafts; ++i)
        for (int j = 0; j < kKeys; ++j) {
            const int shown = j < kCache || sees(i, j - kCache);
            everything[i * kKeys + j] = (uint8_t)shown;
            if (j >= kCache) tree[i * kDrafts + j - kCache] = (uint8_t)shown;
        }

    const FoveaDeviceProperties properties = processor(1);
    const FoveaPlan one = plan_of(&properties, kKeys, 1, 0), cache = plan_of(&properties, kCache, 0, 1),
                    drafts = plan_of(&properties, kDrafts, 1, 1);
    FoveaMergeDesc merge = foveaMergeDesc();
    merge.parts = 2;
    merge.batch = 1;
    merge.heads = kHeads;
    merge.dim = kDim;
    merge.len = kDrafts;
    FoveaDiag diag = foveaDiag();
    FoveaPlan both;
    require(foveaPlanMerge(&properties, &merge, NULL, &both, &diag) == FOVEA_OK, diag.text);
    FoveaHostBuffer call[FOVEA_BIND_COUNT] = {{0}};
    call[FOVEA_BIND_X] = (FoveaHostBuffer){parts, sizeof parts};
    call[FOVEA_BIND_PART_LSE] = (FoveaHostBuffer){parts_lse, sizeof parts_lse};
    call[FOVEA_BIND_Y] = (FoveaHostBuffer){merged, sizeof merged};
    call[FOVEA_BIND_LSE] = (FoveaHostBuffer){merged_lse, sizeof merged_lse};

    double with_mask = 1e9, in_parts = 1e9;
    for (int round = 0; round < kRounds; ++round) {
        const double began = milliseconds();
        attend(one, 0, everything, sizeof everything, whole, NULL);
        const double between = milliseconds();
        attend(cache, 0, NULL, 0, parts, parts_lse);
        attend(drafts, kCache, tree, sizeof tree, parts + kOut, parts_lse + kRows);
        run_plan(both, call);
        const double end = milliseconds();
        if (between - began < with_mask) with_mask = between - began;
        if (end - between < in_parts) in_parts = end - between;
    }
    double worst = 0;
    for (uint32_t n = 0; n < kOut; ++n) {
        const double difference = fabs((double)whole[n] - merged[n]);
        if (!(difference <= worst)) worst = difference; /* NaN counts */
    }
    printf("a tree of %d drafts over %d keys: %.2f ms with a mask of %zu bytes, %.2f ms in two parts with one of %zu; the "
           "results differ by %.1e\n",
           kDrafts, kCache, with_mask, sizeof everything, in_parts, sizeof tree, worst);
    foveaDestroyPlan(one);
    foveaDestroyPlan(cache);
    foveaDestroyPlan(drafts);
    foveaDestroyPlan(both);
    require(worst < 1e-5, "two parts are not the whole");
    return 0;
}
