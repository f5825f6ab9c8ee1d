/* A decode loop with a KV cache, on the CPU: the prompt in one call (prefill), then one token at a time. The number of
 * rows that the cache holds is data, so the same plans serve every step. Run once for each type of KV cache. No Vulkan.
 *
 * q and o are [heads, rows, dim], new keys and values [heads_kv, rows, dim], the caches [heads_kv, capacity, dim]. */
#include "cpu.h"

#include <math.h>

enum { kHeads = 8, kHeadsKv = 2, kDim = 64, kCapacity = 256, kPrompt = 40, kTokens = 60 };

/* One element of a query, key or value. */
static float element(uint32_t what, uint32_t token, uint32_t head, uint32_t column) {
    return number(what, (token * 67 + head) * 131 + column);
}

/* Writes `rows` new rows of float32 after those that the cache holds, converted to the cache's type. */
static FoveaPlan plan_append(const FoveaDeviceProperties* properties, uint64_t rows, FoveaDtype cache_type) {
    FoveaDiag diag = foveaDiag();
    FoveaPlan plan;
    FoveaAppendDesc append = foveaAppendDesc();
    append.y_type = cache_type;
    append.batch = 1;
    append.heads = kHeadsKv;
    append.dim = kDim;
    append.len = rows;
    append.capacity = kCapacity;
    append.has_sequences = 1; /* how many rows the cache holds already */
    require(foveaPlanAppend(properties, &append, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    return plan;
}

// [attend]
/* Attention of the last `rows` tokens over the whole cache. */
static FoveaPlan plan_attend(const FoveaDeviceProperties* properties, uint64_t rows, FoveaDtype cache_type) {
    FoveaDiag diag = foveaDiag();
    FoveaPlan plan;
    FoveaAttentionDesc attend = foveaAttentionDesc();
    attend.k_type = attend.v_type = cache_type;
    attend.batch = 1;
    attend.heads_q = kHeads;
    attend.heads_kv = kHeadsKv;
    attend.dim_qk = attend.dim_v = kDim;
    attend.len_q = rows;
    attend.len_kv = kCapacity; /* the most; each run reads the length from its table */
    attend.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_VARLEN;
    attend.align = FOVEA_ALIGN_BOTTOM_RIGHT; /* the last query is the last key's token */
    require(foveaPlanAttention(properties, &attend, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    return plan;
}
// [end attend]

static float q[kHeads * kPrompt * kDim], k[kHeadsKv * kPrompt * kDim], v[kHeadsKv * kPrompt * kDim];
static float o[kHeads * kPrompt * kDim];
static float k_cache[kHeadsKv * kCapacity * kDim], v_cache[kHeadsKv * kCapacity * kDim]; /* room for any type */

// [step]
/* One step: new keys and values go into the cache, then the queries of these tokens attend. `held` counts tokens. */
static void step(FoveaPlan append, FoveaPlan attend, int32_t* held, int32_t rows) {
    FoveaSequence length = {.q_length = rows, .kv_length = *held}; /* before the new rows */
    FoveaHostBuffer call[FOVEA_BIND_COUNT] = {{0}};
    call[FOVEA_BIND_SEQUENCES] = (FoveaHostBuffer){&length, sizeof length};
    call[FOVEA_BIND_X] = (FoveaHostBuffer){k, sizeof k};
    call[FOVEA_BIND_Y] = (FoveaHostBuffer){k_cache, sizeof k_cache};
    run_plan(append, call);
    call[FOVEA_BIND_X] = (FoveaHostBuffer){v, sizeof v};
    call[FOVEA_BIND_Y] = (FoveaHostBuffer){v_cache, sizeof v_cache};
    run_plan(append, call);

    length.kv_length = *held += rows; /* with the new rows */
    FoveaHostBuffer seen[FOVEA_BIND_COUNT] = {{0}};
    seen[FOVEA_BIND_SEQUENCES] = (FoveaHostBuffer){&length, sizeof length};
    seen[FOVEA_BIND_Q] = (FoveaHostBuffer){q, sizeof q};
    seen[FOVEA_BIND_K] = (FoveaHostBuffer){k_cache, sizeof k_cache};
    seen[FOVEA_BIND_V] = (FoveaHostBuffer){v_cache, sizeof v_cache};
    seen[FOVEA_BIND_O] = (FoveaHostBuffer){o, sizeof o};
    run_plan(attend, seen);
}
// [end step]

/* The model: queries, keys and values of tokens [first, first + rows). */
static void project(uint32_t first, uint32_t rows) {
    for (uint32_t h = 0; h < kHeads; ++h)
        for (uint32_t i = 0; i < rows; ++i)
            for (uint32_t c = 0; c < kDim; ++c) {
                const uint32_t n = (h * rows + i) * kDim + c;
                q[n] = element(0, first + i, h, c);
                if (h >= kHeadsKv) continue;
                k[n] = element(1, first + i, h, c);
                v[n] = element(2, first + i, h, c);
            }
}

/* The last of `rows` rows of o against attention in double precision, over the exact keys and values of all `held`
 * tokens. */
static double largest_difference(uint32_t rows, int32_t held) {
    const uint32_t token = (uint32_t)held - 1;
    double largest = 0;
    for (uint32_t h = 0; h < kHeads; ++h) {
        const uint32_t kv = h / (kHeads / kHeadsKv);
        double sum[kDim] = {0}, total = 0;
        for (uint32_t j = 0; j <= token; ++j) {
            double dot = 0;
            for (uint32_t c = 0; c < kDim; ++c) dot += (double)element(0, token, h, c) * element(1, j, kv, c);
            const double weight = exp(dot / sqrt(kDim));
            total += weight;
            for (uint32_t c = 0; c < kDim; ++c) sum[c] += weight * element(2, j, kv, c);
        }
        for (uint32_t c = 0; c < kDim; ++c) {
            const double difference = fabs(sum[c] / total - o[(h * rows + rows - 1) * kDim + c]);
            if (!(difference <= largest)) largest = difference; /* NaN counts */
        }
    }
    return largest;
}

/* The whole loop. Returns the largest difference from attention over the exact keys and values. */
static double decode(const FoveaDeviceProperties* properties, FoveaDtype cache_type) {
    double worst = 0;
    const FoveaPlan append_prompt = plan_append(properties, kPrompt, cache_type);
    const FoveaPlan attend_prompt = plan_attend(properties, kPrompt, cache_type);
    const FoveaPlan append_one = plan_append(properties, 1, cache_type), attend_one = plan_attend(properties, 1, cache_type);
    int32_t held = 0;
    project(0, kPrompt);
    step(append_prompt, attend_prompt, &held, kPrompt); /* prefill */
    worst = fmax(worst, largest_difference(kPrompt, held));
    while (held < kTokens) {
        project((uint32_t)held, 1);
        step(append_one, attend_one, &held, 1);
        worst = fmax(worst, largest_difference(1, held));
    }
    foveaDestroyPlan(append_prompt);
    foveaDestroyPlan(append_one);
    foveaDestroyPlan(attend_prompt);
    foveaDestroyPlan(attend_one);
    return worst;
}

int main(void) {
    const FoveaDeviceProperties properties = processor(1);
    const struct {
        const char* name;
        FoveaDtype type;
        double tolerance;
    } caches[] = {{"float32", FOVEA_F32, 2e-6},      {"float16", FOVEA_F16, 3e-4},      {"bfloat16", FOVEA_BF16, 2e-3},
                  {"FP8 E4M3", FOVEA_F8_E4M3, 3e-2}, {"FP8 E5M2", FOVEA_F8_E5M2, 6e-2}, {"Q8_0", FOVEA_Q8_0, 5e-3},
                  {"Q4_0", FOVEA_Q4_0, 8e-2}};
    for (size_t n = 0; n < sizeof caches / sizeof *caches; ++n) {
        const double worst = decode(&properties, caches[n].type);
        printf("KV cache in %-8s  largest difference after %d tokens %.1e\n", caches[n].name, kTokens, worst);
        require(worst < caches[n].tolerance, "the result is wrong");
    }
    return 0;
}
