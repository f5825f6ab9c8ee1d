/* Runs each function of samples/calls.h and compares it with attention written out token by token. */
#include <fovea/fovea.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

enum { kHeads = 2, kDim = 4, kTokens = 40, kToken = kHeads * kDim };

/* q, k and v of every token of two sequences, [sequence][token][head][dim]. */
static float g_q[2][kTokens][kToken], g_k[2][kTokens][kToken], g_v[2][kTokens][kToken];
static FoveaDeviceProperties g_properties;
static FoveaDiag g_diag;
static int g_failures;

static void fill(float* values, size_t count, uint32_t seed) {
    for (size_t n = 0; n < count; ++n) {
        seed = seed * 1664525u + 1013904223u;
        values[n] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
}

static void expect_ok(FoveaResult result, const char* what) {
    if (result == FOVEA_OK) return;
    ++g_failures;
    printf("%s: %s: %s\n", what, g_diag.field, g_diag.text);
}

/* o of token i of a sequence, that sees the last `window` tokens up to itself (0: all of them). */
static void expect_attention(const float* o, size_t head_stride, int sequence, int i, int window, const char* what) {
    for (int h = 0; h < kHeads; ++h) {
        double sum = 0, expected[kDim] = {0};
        for (int j = window && i >= window ? i - window + 1 : 0; j <= i; ++j) {
            double score = 0;
            for (int d = 0; d < kDim; ++d)
                score += (double)g_q[sequence][i][h * kDim + d] * g_k[sequence][j][h * kDim + d];
            const double weight = exp(score / sqrt(kDim));
            sum += weight;
            for (int d = 0; d < kDim; ++d) expected[d] += weight * g_v[sequence][j][h * kDim + d];
        }
        for (int d = 0; d < kDim; ++d) {
            if (fabs(o[h * head_stride + d] - expected[d] / sum) < 1e-6) continue;
            ++g_failures;
            printf("%s: token %d, head %d, element %d: %g, expected %g\n", what, i, h, d, o[h * head_stride + d],
                   expected[d] / sum);
        }
    }
}

static void expect_near(float got, double expected, const char* what, int row, int element) {
    if (fabs(got - expected) < 1e-6) return;
    ++g_failures;
    printf("%s: row %d, element %d: %g, expected %g\n", what, row, element, got, expected);
}

/* Tokens [first, first + count) of a sequence as [heads, count, dim]. */
static void gather(float tokens[][kToken], int first, int count, float* out) {
    for (int h = 0; h < kHeads; ++h)
        for (int n = 0; n < count; ++n)
            memcpy(out + (h * count + n) * kDim, tokens[first + n] + h * kDim, kDim * sizeof(float));
}

/* Two query heads on one key/value head, 3 queries on 5 keys. */
static void test_attend_once(FoveaAlign align, int offset, float* sinks) {
    enum { kQueries = 3, kKeys = 5 };
    float q[kHeads * kQueries * kDim], k[kHeads * kKeys * kDim], v[kHeads * kKeys * kDim], o[kHeads * kQueries * kDim];
    gather(g_q[0], 0, kQueries, q);
    gather(g_k[0], 0, kKeys, k); /* only its first head is used */
    gather(g_v[0], 0, kKeys, v);
    expect_ok(attend_once(&g_properties, kHeads, 1, kDim, kQueries, kKeys, align, sinks, q, k, v, o, &g_diag), "attend_once");
    for (int row = 0; row < kHeads * kQueries; ++row) {
        double sum = sinks ? exp(sinks[row / kQueries]) : 0, expected[kDim] = {0};
        for (int j = 0; j <= row % kQueries + offset; ++j) {
            double score = 0;
            for (int d = 0; d < kDim; ++d) score += (double)q[row * kDim + d] * k[j * kDim + d];
            const double weight = exp(score / sqrt(kDim));
            sum += weight;
            for (int d = 0; d < kDim; ++d) expected[d] += weight * v[j * kDim + d];
        }
        for (int d = 0; d < kDim; ++d) expect_near(o[row * kDim + d], expected[d] / sum, "attend_once", row, d);
    }
}

/* Sequences of 7, 0 and 12 tokens; the last begins as the second of the test's sequences. */
static void test_attend_packed(void) {
    enum { kRows = 19 };
    const int32_t starts[] = {0, 7, 7, kRows};
    FoveaSequence sequences[3];
    float q[kRows * kToken], k[kRows * kToken], v[kRows * kToken], o[kRows * kToken];
    for (int row = 0; row < kRows; ++row) {
        const int sequence = row >= 7, token = row - 7 * sequence;
        memcpy(q + row * kToken, g_q[sequence][token], sizeof g_q[0][0]);
        memcpy(k + row * kToken, g_k[sequence][token], sizeof g_k[0][0]);
        memcpy(v + row * kToken, g_v[sequence][token], sizeof g_v[0][0]);
    }
    expect_ok(attend_packed(&g_properties, kHeads, kDim, 3, starts, sequences, q, k, v, o, &g_diag), "attend_packed");
    for (int row = 0; row < kRows; ++row)
        expect_attention(o + row * kToken, kDim, row >= 7, row - 7 * (row >= 7), 0, "attend_packed");
}

static void test_append_and_attend(void) {
    enum { kCapacity = 24 };
    float k_cache[kHeads * kCapacity * kDim], v_cache[kHeads * kCapacity * kDim];
    const int steps[] = {5, 3, 1, 1, 14};
    for (size_t n = 0; n < kHeads * kCapacity * kDim; ++n) k_cache[n] = v_cache[n] = NAN; /* nothing there yet */
    for (int step = 0, held = 0; step < 5; held += steps[step++]) {
        const int fresh = steps[step];
        float q[kHeads * 14 * kDim], k[kHeads * 14 * kDim], v[kHeads * 14 * kDim], o[kHeads * 14 * kDim];
        gather(g_q[0], held, fresh, q);
        gather(g_k[0], held, fresh, k);
        gather(g_v[0], held, fresh, v);
        expect_ok(append_and_attend(&g_properties, kHeads, kDim, (uint64_t)held, (uint64_t)fresh, kCapacity, q, k, v,
                                    k_cache, v_cache, o, &g_diag),
                  "append_and_attend");
        for (int n = 0; n < fresh; ++n)
            expect_attention(o + n * kDim, (size_t)(fresh * kDim), 0, held + n, 0, "append_and_attend");
    }
}

static void test_past_to_present(void) {
    enum { kPast = 7, kFresh = 2, kBoth = kPast + kFresh };
    float past[2 * kPast * kToken], x[2 * kFresh * kToken], present[2 * kBoth * kToken], expected[2 * kBoth * kToken];
    for (int b = 0; b < 2; ++b) {
        gather(g_k[b], 0, kPast, past + b * kPast * kToken);
        gather(g_k[b], kPast, kFresh, x + b * kFresh * kToken);
        gather(g_k[b], 0, kBoth, expected + b * kBoth * kToken);
    }
    expect_ok(past_to_present(&g_properties, 2, kHeads, kDim, kPast, kFresh, past, x, present, &g_diag),
              "past_to_present");
    if (memcmp(present, expected, sizeof present) == 0) return;
    ++g_failures;
    printf("past_to_present: present is not past and x\n");
}

/* The first sequence steps from `first` to the end, the second half as fast (each of its tokens twice). With
 * `ring_pages` the table is filled anew for each step. */
static void step_through(int first, int window, uint32_t page_size, uint32_t page_count, uint64_t table_pages,
                         int32_t* pages, uint32_t ring_pages, float* k_pool, float* v_pool, const char* what) {
    for (int i = first; i < kTokens; ++i) {
        float q[2 * kToken], k[2 * kToken], v[2 * kToken], o[2 * kToken];
        int32_t held[2];
        for (int b = 0; b < 2; ++b) {
            held[b] = b == 0 ? i : first + (i - first) / 2;
            memcpy(q + b * kToken, g_q[b][held[b]], sizeof g_q[b][0]);
            memcpy(k + b * kToken, g_k[b][held[b]], sizeof g_k[b][0]);
            memcpy(v + b * kToken, g_v[b][held[b]], sizeof g_v[b][0]);
            if (!ring_pages) continue;
            int32_t* row = pages + (uint64_t)b * table_pages;
            fill_ring_table((uint64_t)held[b] + 1, page_size, ring_pages, table_pages, row);
            for (uint64_t n = 0; n < table_pages; ++n)
                if (b == 1 && row[n] >= 0) row[n] += (int32_t)ring_pages; /* each sequence has its own ring */
        }
        expect_ok(paged_step(&g_properties, kHeads, kDim, page_size, page_count, table_pages, pages, held,
                             (uint64_t)window, q, k, v, k_pool, v_pool, o, &g_diag),
                  what);
        for (int b = 0; b < 2; ++b) expect_attention(o + b * kToken, kDim, b, held[b], window, what);
    }
}

static void test_paged_step(void) {
    /* 10 pages of 4 tokens for each sequence, in no order. The first two hold what both begin with. */
    enum { kPage = 4, kTable = kTokens / kPage, kPool = 2 * kTable };
    static float k_pool[kPool * kPage * kToken], v_pool[kPool * kPage * kToken];
    int32_t pages[2 * kTable];
    for (int n = 0; n < kTable; ++n) {
        pages[n] = (7 * n + 3) % kTable;
        pages[kTable + n] = n < 2 ? pages[n] : kTable + (3 * n + 1) % kTable;
    }
    memcpy(g_k[1], g_k[0], 2 * kPage * sizeof g_k[0][0]);
    memcpy(g_v[1], g_v[0], 2 * kPage * sizeof g_v[0][0]);
    for (size_t n = 0; n < kPool * kPage * kToken; ++n) k_pool[n] = v_pool[n] = NAN;
    for (int i = 0; i < 2 * kPage; ++i) {
        float* k_page = k_pool + pages[i / kPage] * kPage * kToken;
        float* v_page = v_pool + pages[i / kPage] * kPage * kToken;
        for (int h = 0; h < kHeads; ++h) {
            memcpy(k_page + (h * kPage + i % kPage) * kDim, g_k[0][i] + h * kDim, kDim * sizeof(float));
            memcpy(v_page + (h * kPage + i % kPage) * kDim, g_v[0][i] + h * kDim, kDim * sizeof(float));
        }
    }
    step_through(2 * kPage, 0, kPage, kPool, kTable, pages, 0, k_pool, v_pool, "paged_step");
}

static void test_ring(void) {
    enum { kPage = 4, kTable = kTokens / kPage, kWindow = 6, kRing = (kWindow + kPage - 2) / kPage + 1 };
    float k_pool[2 * kRing * kPage * kToken], v_pool[2 * kRing * kPage * kToken];
    int32_t pages[2 * kTable];
    for (size_t n = 0; n < 2 * kRing * kPage * kToken; ++n) k_pool[n] = v_pool[n] = NAN;
    step_through(0, kWindow, kPage, 2 * kRing, kTable, pages, kRing, k_pool, v_pool, "fill_ring_table");
}

/* Both heads' last query against the first 13 keys, with sinks, and against the rest, without. */
static void test_merge_two(void) {
    enum { kPrefix = 13, kLast = kTokens - 1 };
    const float sinks[kHeads] = {0.5F, -1};
    float parts[2][kToken], lse[2][kHeads], o[kToken], o_lse[kHeads];
    for (int h = 0; h < kHeads; ++h) {
        double expected[kDim] = {0}, sum = exp(sinks[h]);
        for (int part = 0; part < 2; ++part) {
            double own[kDim] = {0}, own_sum = part == 0 ? exp(sinks[h]) : 0;
            for (int j = part ? kPrefix : 0; j < (part ? kTokens : kPrefix); ++j) {
                double score = 0;
                for (int d = 0; d < kDim; ++d) score += (double)g_q[0][kLast][h * kDim + d] * g_k[0][j][h * kDim + d];
                const double weight = exp(score / sqrt(kDim));
                own_sum += weight;
                sum += weight;
                for (int d = 0; d < kDim; ++d) own[d] += weight * g_v[0][j][h * kDim + d];
                for (int d = 0; d < kDim; ++d) expected[d] += weight * g_v[0][j][h * kDim + d];
            }
            lse[part][h] = (float)log(own_sum);
            for (int d = 0; d < kDim; ++d) parts[part][h * kDim + d] = (float)(own[d] / own_sum);
        }
        /* Heads may differ in both, so each is a separate row. */
        float rows[2 * kDim], head_lse[2], got_lse;
        for (int part = 0; part < 2; ++part) {
            memcpy(rows + part * kDim, parts[part] + h * kDim, kDim * sizeof(float));
            head_lse[part] = lse[part][h];
        }
        expect_ok(merge_two(&g_properties, 1, kDim, rows, head_lse, o + h * kDim, &got_lse, &g_diag), "merge_two");
        expect_near(got_lse, log(sum), "merge_two: lse", h, 0);
        for (int d = 0; d < kDim; ++d) expect_near(o[h * kDim + d], expected[d] / sum, "merge_two", h, d);
    }
    expect_ok(merge_two(&g_properties, kHeads, kDim, parts[0], lse[0], o, o_lse, &g_diag), "merge_two");
    for (int h = 0; h < kHeads; ++h)
        expect_near(o_lse[h], log(exp(lse[0][h]) + exp(lse[1][h])), "merge_two of both heads", h, 0);
}

// C may pass any number as an enum.
static void test_names(void) {
    if (strcmp(foveaKernelName((FoveaKernel)99), "unknown") == 0 &&
        strcmp(foveaResultText((FoveaResult)-1), "unknown result") == 0)
        return;
    fprintf(stderr, "a number that is no enumerator has a name\n");
    ++g_failures;
}

int main(void) {
    g_properties.struct_size = sizeof g_properties;
    g_diag.struct_size = sizeof g_diag;
    fill(&g_q[0][0][0], sizeof g_q / sizeof(float), 1);
    fill(&g_k[0][0][0], sizeof g_k / sizeof(float), 2);
    fill(&g_v[0][0][0], sizeof g_v / sizeof(float), 3);
    expect_ok(foveaCpuProperties(1, &g_properties, &g_diag), "foveaCpuProperties");
    float sinks[kHeads] = {0.5F, -1};
    test_attend_once(FOVEA_ALIGN_TOP_LEFT, 0, NULL);
    test_attend_once(FOVEA_ALIGN_BOTTOM_RIGHT, 2, NULL);
    test_attend_once(FOVEA_ALIGN_BOTTOM_RIGHT, 2, sinks);
    test_attend_packed();
    test_append_and_attend();
    test_past_to_present();
    test_paged_step();
    test_ring();
    test_merge_two();
    test_names();
    if (g_failures == 0) printf("the functions of samples/calls.h are correct\n");
    return g_failures != 0;
}
