/* Decoding from a paged KV cache on the CPU: two sequences of different lengths, one token each at a time.
 * Three plans serve every token, because each run reads lengths and pages from tables. No Vulkan.
 *
 * q, k, v and o are [2, heads, 1, dim]; the pools of keys and values are [pages, heads_kv, page rows, dim]. */
#include "cpu.h"

#include <math.h>

enum { kSequences = 2, kHeads = 8, kHeadsKv = 2, kDim = 64, kPageRows = 16, kPages = 12, kTablePages = 5, kTokens = 60 };
enum { kPoolFloats = kPages * kHeadsKv * kPageRows * kDim };

/* Keys, values and queries: one number of each token, head and column. */
static float element(uint32_t what, uint32_t sequence, uint32_t token, uint32_t head, uint32_t column) {
    return number(what, ((sequence * 521 + token) * 67 + head) * 131 + column);
}

/* Attention of one row in double precision, over the tokens up to its own. */
static double largest_difference(const float* o, uint32_t sequence, uint32_t token) {
    double largest = 0;
    for (uint32_t h = 0; h < kHeads; ++h) {
        const uint32_t kv = h / (kHeads / kHeadsKv);
        double sum[kDim] = {0}, total = 0;
        for (uint32_t j = 0; j <= token; ++j) {
            double dot = 0;
            for (uint32_t c = 0; c < kDim; ++c)
                dot += (double)element(0, sequence, token, h, c) * element(1, sequence, j, kv, c);
            const double weight = exp(dot / sqrt(kDim));
            total += weight;
            for (uint32_t c = 0; c < kDim; ++c) sum[c] += weight * element(2, sequence, j, kv, c);
        }
        for (uint32_t c = 0; c < kDim; ++c) {
            const double difference = fabs(sum[c] / total - o[h * kDim + c]);
            if (!(difference <= largest)) largest = difference; /* NaN counts */
        }
    }
    return largest;
}

static void run(FoveaPlan plan, const FoveaHostBuffer* bindings) {
    static float workspace[1 << 16]; /* asked for once; FoveaPlanInfo::workspace_bytes says how much is needed */
    FoveaDiag diag = foveaDiag();
    FoveaPlanInfo info = foveaPlanInfo();
    require(foveaGetPlanInfo(plan, &info, &diag) == FOVEA_OK, diag.text);
    require(info.workspace_bytes + 64 <= sizeof workspace, "the workspace is too small");
    FoveaCpuRun call = foveaCpuRun();
    call.bindings = bindings;
    call.binding_count = FOVEA_BIND_COUNT;
    call.workspace.data = (char*)workspace + (64 - (uintptr_t)workspace % 64) % 64;
    call.workspace.size_bytes = info.workspace_bytes;
    require(foveaRunCpu(plan, &call, &diag) == FOVEA_OK, diag.text);
}

int main(void) {
    FoveaDiag diag = foveaDiag();
    const FoveaDeviceProperties properties = processor(1);

    FoveaAppendDesc append = foveaAppendDesc();
    append.batch = kSequences;
    append.heads = kHeadsKv;
    append.dim = kDim;
    append.len = 1;
    FoveaAttentionDesc attend = foveaAttentionDesc();
    attend.batch = kSequences;
    attend.heads_q = kHeads;
    attend.heads_kv = kHeadsKv;
    attend.dim_qk = attend.dim_v = kDim;
    attend.len_q = 1;
    /* [plan] Once: the plans. Batch, heads and dims are set; lengths are the longest that there can be. */
    append.capacity = attend.len_kv = kTablePages * kPageRows;
    append.page_size = attend.page_size = kPageRows;
    append.page_count = attend.page_count = kPages;
    append.block_table_pages = attend.block_table_pages = kTablePages;
    append.has_sequences = 1; /* how many rows each sequence holds already */
    attend.flags = FOVEA_FLAG_VARLEN; /* the one query attends to every token of its sequence */
    FoveaPlan append_plan, attend_plan;
    require(foveaPlanAppend(&properties, &append, NULL, &append_plan, &diag) == FOVEA_OK, diag.text);
    require(foveaPlanAttention(&properties, &attend, NULL, &attend_plan, &diag) == FOVEA_OK, diag.text);

    // [end plan]
    /* The pool's page for page n of a sequence: here pages are scattered. */
    int32_t pages[kSequences][kTablePages];
    for (int s = 0; s < kSequences; ++s)
        for (int n = 0; n < kTablePages; ++n) pages[s][n] = (n * 5 + s * 2 + 3) % kPages;

    static float k_pool[kPoolFloats], v_pool[kPoolFloats];
    static float q[kSequences][kHeads * kDim], k[kSequences][kHeadsKv * kDim], v[kSequences][kHeadsKv * kDim];
    static float o[kSequences][kHeads * kDim];
    FoveaSequence entries[kSequences];
    const FoveaHostBuffer table = {pages, sizeof pages}, lengths = {entries, sizeof entries};
    double worst = 0;
    for (uint32_t step = 0; step < kTokens; ++step) {
        const uint32_t token[kSequences] = {step, step / 2}; /* the second sequence is half as long */
        for (uint32_t s = 0; s < kSequences; ++s)
            for (uint32_t h = 0; h < kHeads; ++h)
                for (uint32_t c = 0; c < kDim; ++c) {
                    q[s][h * kDim + c] = element(0, s, token[s], h, c);
                    if (h >= kHeadsKv) continue;
                    k[s][h * kDim + c] = element(1, s, token[s], h, c);
                    v[s][h * kDim + c] = element(2, s, token[s], h, c);
                }
        for (uint32_t s = 0; s < kSequences; ++s) entries[s] = (FoveaSequence){0, 1, 0, (int32_t)token[s]};
        FoveaHostBuffer cache[FOVEA_BIND_COUNT] = {{0}};
        cache[FOVEA_BIND_SEQUENCES] = lengths;
        cache[FOVEA_BIND_BLOCK_TABLE] = table;
        cache[FOVEA_BIND_X] = (FoveaHostBuffer){k, sizeof k};
        cache[FOVEA_BIND_Y] = (FoveaHostBuffer){k_pool, sizeof k_pool};
        run(append_plan, cache);
        cache[FOVEA_BIND_X] = (FoveaHostBuffer){v, sizeof v};
        cache[FOVEA_BIND_Y] = (FoveaHostBuffer){v_pool, sizeof v_pool};
        run(append_plan, cache);

        for (uint32_t s = 0; s < kSequences; ++s) entries[s].kv_length = (int32_t)token[s] + 1; /* with the new one */
        FoveaHostBuffer call[FOVEA_BIND_COUNT] = {{0}};
        call[FOVEA_BIND_Q] = (FoveaHostBuffer){q, sizeof q};
        call[FOVEA_BIND_K] = (FoveaHostBuffer){k_pool, sizeof k_pool};
        call[FOVEA_BIND_V] = (FoveaHostBuffer){v_pool, sizeof v_pool};
        call[FOVEA_BIND_O] = (FoveaHostBuffer){o, sizeof o};
        call[FOVEA_BIND_SEQUENCES] = lengths;
        call[FOVEA_BIND_BLOCK_TABLE] = table;
        run(attend_plan, call);
        for (uint32_t s = 0; s < kSequences; ++s) worst = fmax(worst, largest_difference(o[s], s, token[s]));
    }
    foveaDestroyPlan(append_plan);
    foveaDestroyPlan(attend_plan);
    printf("%d tokens of two paged sequences on %s: largest difference from double %.2g\n", kTokens,
           foveaCpuTargetName(properties.cpu_target), worst);
    require(worst < 2e-6, "the result is wrong");
    return 0;
}
