/* A packed (varlen) batch on the CPU: sequences of different lengths one after the other, without padding. Each row of
 * the sequence table says where a sequence begins and how long it is, as cu_seqlens does elsewhere. No Vulkan.
 *
 * q, k, v and o are [rows of all sequences, heads, dim]. */
#include "cpu.h"

#include <math.h>

enum { kHeads = 4, kDim = 32, kSequences = 4, kRow = kHeads * kDim };
static const int32_t kStarts[kSequences + 1] = {0, 7, 7, 40, 53}; /* cu_seqlens: the second sequence is empty */
enum { kRows = 53, kLongest = 33 };

static float q[kRows * kRow], k[kRows * kRow], v[kRows * kRow], o[kRows * kRow];

static FoveaPlan plan_of(const FoveaDeviceProperties* properties) {
    FoveaDiag diag = foveaDiag();
    FoveaPlan plan;
    // [plan]
    FoveaAttentionDesc attend = foveaAttentionDesc();
    attend.batch = kSequences;
    attend.heads_q = attend.heads_kv = kHeads;
    attend.dim_qk = attend.dim_v = kDim;
    attend.len_q = attend.len_kv = kLongest;              /* the longest sequence */
    attend.packed_rows_q = attend.packed_rows_kv = kRows; /* all sequences together */
    attend.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_VARLEN;
    attend.align = FOVEA_ALIGN_BOTTOM_RIGHT; /* each sequence by its own lengths */
    require(foveaPlanAttention(properties, &attend, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    // [end plan]
    return plan;
}

/* Attention of one row in double precision, over its own sequence up to itself. */
static double largest_difference(int32_t first, int32_t row) {
    double largest = 0;
    for (int h = 0; h < kHeads; ++h) {
        double sum[kDim] = {0}, total = 0;
        for (int32_t j = first; j <= row; ++j) {
            double dot = 0;
            for (int c = 0; c < kDim; ++c) dot += (double)q[row * kRow + h * kDim + c] * k[j * kRow + h * kDim + c];
            const double weight = exp(dot / sqrt(kDim));
            total += weight;
            for (int c = 0; c < kDim; ++c) sum[c] += weight * v[j * kRow + h * kDim + c];
        }
        for (int c = 0; c < kDim; ++c) {
            const double difference = fabs(sum[c] / total - o[row * kRow + h * kDim + c]);
            if (!(difference <= largest)) largest = difference; /* NaN counts */
        }
    }
    return largest;
}

int main(void) {
    for (uint32_t n = 0; n < kRows * kRow; ++n) q[n] = number(0, n), k[n] = number(1, n), v[n] = number(2, n);
    const FoveaDeviceProperties properties = processor(1);
    const FoveaPlan plan = plan_of(&properties);
    // [run]
    FoveaSequence sequences[kSequences];
    for (int b = 0; b < kSequences; ++b) {
        const int32_t length = kStarts[b + 1] - kStarts[b];
        sequences[b] = (FoveaSequence){kStarts[b], length, kStarts[b], length}; /* rows of q and o, rows of k and v */
    }
    FoveaHostBuffer call[FOVEA_BIND_COUNT] = {{0}}; /* and Q, K, V, O */
    call[FOVEA_BIND_SEQUENCES] = (FoveaHostBuffer){sequences, sizeof sequences};
    // [end run]
    call[FOVEA_BIND_Q] = (FoveaHostBuffer){q, sizeof q};
    call[FOVEA_BIND_K] = (FoveaHostBuffer){k, sizeof k};
    call[FOVEA_BIND_V] = (FoveaHostBuffer){v, sizeof v};
    call[FOVEA_BIND_O] = (FoveaHostBuffer){o, sizeof o};
    run_plan(plan, call);
    foveaDestroyPlan(plan);
    double worst = 0;
    for (int b = 0; b < kSequences; ++b)
        for (int32_t row = kStarts[b]; row < kStarts[b + 1]; ++row)
            worst = fmax(worst, largest_difference(kStarts[b], row));
    printf("%d packed sequences of %d rows together: largest difference from double %.2g\n", kSequences, kRows, worst);
    require(worst < 2e-6, "the result is wrong");
    return 0;
}
