/* Sparse attention by lists of keys, on the CPU: each key/value head of each sequence reads only the blocks
 * that its list names (Quest, Tang et al., 2024, picks them as below: by what the largest product with a
 * block's keys can be). A list is a row of the block table that a paged cache has anyway: heads become batch
 * entries of one key/value head, and each block of a head is a separate page. What no list names is never
 * read. No Vulkan.
 *
 * q and o are [heads, dim], one token; the pool of keys, and of values, is [blocks, heads_kv, block rows, dim]. */
#include "cpu.h"

#include <math.h>

enum { kHeads = 8, kHeadsKv = 2, kDim = 64, kRowsOfBlock = 16, kBlocks = 1024, kListed = 96, kRounds = 5 };
enum { kGroup = kHeads / kHeadsKv, kBlock = kRowsOfBlock * kDim, kPool = kBlocks * kHeadsKv * kBlock };

static float q[kHeads * kDim], k[kPool], v[kPool], all[kHeads * kDim], listed[kHeads * kDim];
static int32_t every_block[kHeadsKv][kBlocks], lists[kHeadsKv][kListed];

static float* block_of(float* pool, uint32_t head, uint32_t block) { return pool + (block * kHeadsKv + head) * kBlock; }

/* Returns an upper bound for the product of a query of the group with a key of the block: by column the
 * larger of q times the least and q times the greatest element there. A program keeps these two rows per
 * block next to its cache. */
static float bound(uint32_t head, uint32_t block) {
    const float* keys = block_of(k, head, block);
    float largest = -INFINITY;
    for (uint32_t g = 0; g < kGroup; ++g) {
        const float* query = q + (head * kGroup + g) * kDim;
        float sum = 0;
        for (uint32_t c = 0; c < kDim; ++c) {
            float least = keys[c], most = keys[c];
            for (uint32_t row = 1; row < kRowsOfBlock; ++row) {
                least = fminf(least, keys[row * kDim + c]);
                most = fmaxf(most, keys[row * kDim + c]);
            }
            sum += fmaxf(query[c] * least, query[c] * most);
        }
        largest = fmaxf(largest, sum);
    }
    return largest;
}

static FoveaPlan plan_of(const FoveaDeviceProperties* properties, uint32_t blocks) {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = kHeadsKv; /* a head with its own list is an entry with its own row of the block table */
    desc.heads_q = kGroup;
    desc.heads_kv = 1;
    desc.dim_qk = desc.dim_v = kDim;
    desc.len_q = 1;
    desc.len_kv = (uint64_t)blocks * kRowsOfBlock; /* lists of unequal lengths: FOVEA_FLAG_VARLEN */
    desc.page_size = kRowsOfBlock;
    desc.page_count = kBlocks * kHeadsKv;
    desc.block_table_pages = blocks;
    FoveaDiag diag = foveaDiag();
    FoveaPlan plan;
    require(foveaPlanAttention(properties, &desc, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    return plan;
}

static double attend(FoveaPlan plan, int32_t* table, uint64_t table_bytes, float* o) {
    FoveaHostBuffer call[FOVEA_BIND_COUNT] = {{0}};
    call[FOVEA_BIND_Q] = (FoveaHostBuffer){q, sizeof q};
    call[FOVEA_BIND_K] = (FoveaHostBuffer){k, sizeof k};
    call[FOVEA_BIND_V] = (FoveaHostBuffer){v, sizeof v};
    call[FOVEA_BIND_O] = (FoveaHostBuffer){o, sizeof all};
    call[FOVEA_BIND_BLOCK_TABLE] = (FoveaHostBuffer){table, table_bytes};
    double least = 1e9;
    for (int round = 0; round < kRounds; ++round) {
        const double began = milliseconds();
        run_plan(plan, call);
        const double took = milliseconds() - began;
        if (took < least) least = took;
    }
    return least;
}

/* The keys of the lists in double precision: how far the result is from them, and their share of all weight. */
static double compare(double* share) {
    double worst = 0;
    *share = 1;
    for (uint32_t h = 0; h < kHeads; ++h) {
        const uint32_t head = h / kGroup;
        double sum[kDim] = {0}, total = 0, everything = 0;
        for (uint32_t block = 0; block < kBlocks; ++block) {
            int is_listed = 0;
            for (uint32_t n = 0; n < kListed; ++n) is_listed |= lists[head][n] == every_block[head][block];
            for (uint32_t row = 0; row < kRowsOfBlock; ++row) {
                double dot = 0;
                for (uint32_t c = 0; c < kDim; ++c)
                    dot += (double)q[h * kDim + c] * block_of(k, head, block)[row * kDim + c];
                const double weight = exp(dot / sqrt(kDim));
                everything += weight;
                if (!is_listed) continue;
                total += weight;
                for (uint32_t c = 0; c < kDim; ++c) sum[c] += weight * block_of(v, head, block)[row * kDim + c];
            }
        }
        for (uint32_t c = 0; c < kDim; ++c) {
            const double difference = fabs(sum[c] / total - listed[h * kDim + c]);
            if (!(difference <= worst)) worst = difference; /* NaN counts */
        }
        if (total / everything < *share) *share = total / everything;
    }
    return worst;
}

int main(void) {
    /* Keys of a block resemble each other, and a query resembles some block. */
    for (uint32_t block = 0; block < kBlocks; ++block)
        for (uint32_t head = 0; head < kHeadsKv; ++head) {
            every_block[head][block] = (int32_t)(block * kHeadsKv + head);
            for (uint32_t n = 0; n < kBlock; ++n) {
                const uint32_t column = n % kDim, at = (block * kHeadsKv + head) * kBlock + n;
                k[at] = 2 * number(10 + block, head * kDim + column) + 0.2f * number(1, at);
                v[at] = number(2, at);
            }
        }
    for (uint32_t h = 0; h < kHeads; ++h)
        for (uint32_t c = 0; c < kDim; ++c)
            q[h * kDim + c] = 1.5f * block_of(k, h / kGroup, 37 * (h + 1))[c] + number(3, h * kDim + c);

    for (uint32_t head = 0; head < kHeadsKv; ++head) {
        static float bounds[kBlocks];
        for (uint32_t block = 0; block < kBlocks; ++block) bounds[block] = bound(head, block);
        for (uint32_t n = 0; n < kListed; ++n) { /* the blocks with the largest bounds, in any order */
            uint32_t best = 0;
            for (uint32_t block = 1; block < kBlocks; ++block)
                if (bounds[block] > bounds[best]) best = block;
            lists[head][n] = every_block[head][best];
            bounds[best] = -INFINITY;
        }
    }
    const FoveaDeviceProperties properties = processor(1);
    const FoveaPlan whole = plan_of(&properties, kBlocks), sparse = plan_of(&properties, kListed);
    const double of_all = attend(whole, every_block[0], sizeof every_block, all),
                 of_lists = attend(sparse, lists[0], sizeof lists, listed);
    double share;
    const double worst = compare(&share);
    printf("%d of %d blocks: %.3f ms for %.3f, %.1f%% of the weight at least; the result differs from theirs by %.1e\n",
           kListed, kBlocks, of_lists, of_all, 100 * share, worst);
    foveaDestroyPlan(whole);
    foveaDestroyPlan(sparse);
    require(worst < 1e-5 && share > 0.9, "the lists are not what was read");
    return 0;
}
