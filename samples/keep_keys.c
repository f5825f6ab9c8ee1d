/* A KV cache that keeps the keys with the most mass, on the CPU: what the last queries of a prompt attended
 * to tells which keys the next ones will need (H2O, Zhang et al., 2023; SnapKV, Li et al., 2024). The weights
 * that the fused kernels never show come back from q, k and lse as a map of height 1, the whole matrix is
 * never held. No Vulkan.
 *
 * q is [heads, tokens, dim], k and v [heads_kv, tokens, dim]; what is kept [heads_kv, kept, dim]. */
#include "cpu.h"

#include <math.h>

enum { kHeads = 4, kHeadsKv = 2, kDim = 32, kTokens = 600, kLast = 32, kKept = 150 };
enum { kGroup = kHeads / kHeadsKv, kRow = kTokens * kDim };

static void run(FoveaPlan plan, const FoveaHostBuffer* bindings) {
    run_plan(plan, bindings);
    foveaDestroyPlan(plan);
}

/* One call of `queries` rows over `keys`; lse may be null. */
static FoveaAttentionDesc attention(uint64_t queries, uint64_t keys, int causal, int wants_lse) {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = 1;
    desc.heads_q = kHeads;
    desc.heads_kv = kHeadsKv;
    desc.dim_qk = desc.dim_v = kDim;
    desc.len_q = queries;
    desc.len_kv = keys;
    desc.flags = causal ? FOVEA_FLAG_CAUSAL : 0;
    desc.outputs = FOVEA_OUTPUT_O | (wants_lse ? FOVEA_OUTPUT_LSE : 0);
    return desc;
}
static void attend(const FoveaDeviceProperties* properties, const FoveaAttentionDesc* desc, float* q, float* k, float* v, float* o,
                   float* lse) {
    FoveaDiag diag = foveaDiag();
    FoveaPlan plan;
    require(foveaPlanAttention(properties, desc, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    FoveaHostBuffer call[FOVEA_BIND_COUNT] = {{0}};
    call[FOVEA_BIND_Q] = (FoveaHostBuffer){q, kHeads * desc->len_q * kDim * sizeof *q};
    call[FOVEA_BIND_K] = (FoveaHostBuffer){k, kHeadsKv * desc->len_kv * kDim * sizeof *k};
    call[FOVEA_BIND_V] = (FoveaHostBuffer){v, kHeadsKv * desc->len_kv * kDim * sizeof *v};
    call[FOVEA_BIND_O] = (FoveaHostBuffer){o, kHeads * desc->len_q * kDim * sizeof *o};
    if (lse) call[FOVEA_BIND_LSE] = (FoveaHostBuffer){lse, kHeads * desc->len_q * sizeof *lse};
    run(plan, call);
}

/* Computes the mass of each key over the last queries of each head, in integer units of FOVEA_TILE_UNIT. */
static void key_mass(const FoveaDeviceProperties* properties, const FoveaAttentionDesc* desc, float* q, float* k,
                     float* lse, uint64_t mass[kHeads][kTokens]) {
    FoveaDiag diag = foveaDiag();
    FoveaMapTileDesc tile = foveaMapTileDesc();
    tile.first_row = kTokens - kLast;
    tile.height = 1; /* all rows in one pixel, each key in its own */
    FoveaPlan plan;
    require(foveaPlanMapTile(properties, desc, &tile, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    FoveaHostBuffer call[FOVEA_BIND_COUNT] = {{0}}; /* and Q, K, LSE */
    call[FOVEA_BIND_TILE_MASS] = (FoveaHostBuffer){mass, kHeads * kTokens * sizeof **mass};
    call[FOVEA_BIND_Q] = (FoveaHostBuffer){q, kHeads * kRow * sizeof *q};
    call[FOVEA_BIND_K] = (FoveaHostBuffer){k, kHeadsKv * kRow * sizeof *k};
    call[FOVEA_BIND_LSE] = (FoveaHostBuffer){lse, kHeads * kTokens * sizeof *lse};
    run(plan, call);
}

static const uint64_t* ranked; /* key of qsort's comparison */
static int by_mass(const void* a, const void* b) {
    const int32_t left = *(const int32_t*)a, right = *(const int32_t*)b;
    if (ranked[left] != ranked[right]) return ranked[left] > ranked[right] ? -1 : 1;
    return left < right ? -1 : 1;
}

static void gather(const FoveaDeviceProperties* properties, int32_t kept[kHeadsKv][kKept], float* from, float* to) {
    FoveaDiag diag = foveaDiag();
    FoveaGatherDesc desc = foveaGatherDesc();
    desc.batch = 1;
    desc.heads = desc.position_heads = kHeadsKv; /* each head keeps its own keys */
    desc.dim = kDim;
    desc.len = kKept;
    desc.capacity = kTokens;
    FoveaPlan plan;
    require(foveaPlanGather(properties, &desc, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    FoveaHostBuffer call[FOVEA_BIND_COUNT] = {{0}};
    call[FOVEA_BIND_X] = (FoveaHostBuffer){from, kHeadsKv * kRow * sizeof *from};
    call[FOVEA_BIND_Y] = (FoveaHostBuffer){to, kHeadsKv * kKept * kDim * sizeof *to};
    call[FOVEA_BIND_POSITIONS] = (FoveaHostBuffer){kept, kHeadsKv * kKept * sizeof **kept};
    run(plan, call);
}

int main(void) {
    static float q[kHeads * kRow], k[kHeadsKv * kRow], v[kHeadsKv * kRow], o[kHeads * kRow], lse[kHeads * kTokens];
    static float small_k[kHeadsKv * kKept * kDim], small_v[kHeadsKv * kKept * kDim];
    static uint64_t mass[kHeads][kTokens];
    /* A prompt of which the next queries want some keys much more than others. */
    for (uint32_t n = 0; n < kHeads * kRow; ++n) q[n] = number(0, n % kDim) * 9 + number(1, n) * 0.2f;
    for (uint32_t n = 0; n < kHeadsKv * kRow; ++n) k[n] = number(2, n), v[n] = number(3, n);
    const FoveaDeviceProperties properties = processor(1);

    const FoveaAttentionDesc prompt = attention(kTokens, kTokens, 1, 1);
    attend(&properties, &prompt, q, k, v, o, lse);
    key_mass(&properties, &prompt, q, k, lse, mass);

    int32_t kept[kHeadsKv][kKept];
    double share = 0;
    for (uint32_t h = 0; h < kHeadsKv; ++h) {
        uint64_t group[kTokens];
        int32_t order[kTokens];
        double all = 0, held = 0;
        for (int32_t j = 0; j < kTokens; ++j) {
            group[j] = 0; /* the query heads of a group read the same keys */
            for (uint32_t n = 0; n < kGroup; ++n) group[j] += mass[h * kGroup + n][j];
            all += (double)group[j];
            order[j] = j;
        }
        ranked = group;
        qsort(order, kTokens, sizeof *order, by_mass);
        for (uint32_t n = 0; n < kKept; ++n) {
            kept[h][n] = order[n];
            held += (double)group[order[n]];
        }
        share += held / all / kHeadsKv;
    }
    gather(&properties, kept, k, small_k);
    gather(&properties, kept, v, small_v);

    /* The next token attends to the whole past, so there is no mask; kept keys are no longer at their
     * positions. */
    static float next[kHeads * kDim], whole[kHeads * kDim], small[kHeads * kDim];
    for (uint32_t n = 0; n < kHeads * kDim; ++n) next[n] = number(0, n % kDim) * 9 + number(4, n) * 0.2f;
    const FoveaAttentionDesc over_all = attention(1, kTokens, 0, 0), over_kept = attention(1, kKept, 0, 0);
    attend(&properties, &over_all, next, k, v, whole, NULL);
    attend(&properties, &over_kept, next, small_k, small_v, small, NULL);
    double worst = 0;
    for (uint32_t n = 0; n < kHeads * kDim; ++n) {
        const double difference = fabs((double)whole[n] - small[n]);
        if (!(difference <= worst)) worst = difference;
    }
    printf("%d of %d keys had %.1f%% of the weight; the next token's result differs by %.3f\n", kKept, kTokens, 100 * share,
           worst);
    require(share > 0.9 && worst < 0.1, "what was kept is not what is looked at");
    return 0;
}
