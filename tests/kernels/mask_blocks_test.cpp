// Blocks that a mask hides from a whole panel of rows are skipped by flash on the CPU: the same bits as with
// a bias of -inf, which is added entry by entry.
#include "kernels/operation_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fovea::test {
namespace {

constexpr uint32_t kHeads = 4, kKvHeads = 2, kDim = 20;
constexpr uint64_t kQueries = 150, kKeys = 700;

// Blocks of 40 rows x 100 keys, hidden or mixed. Keys 300 to 399 are hidden from every row.
bool shows(uint64_t i, uint64_t j) {
    if (j / 100 == 3) return false;
    return (i / 40 + j / 100) % 3 != 0 && (i * 7 + j * 3) % 5 != 0;
}

FoveaAttentionDesc describe(bool causal) {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = 1, desc.heads_q = kHeads, desc.heads_kv = kKvHeads;
    desc.dim_qk = desc.dim_v = kDim, desc.len_q = kQueries, desc.len_kv = kKeys;
    desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    desc.kernel = FOVEA_KERNEL_FLASH;
    desc.mask.present = 1, desc.mask.type = FOVEA_U8, desc.mask.heads = 1;
    if (causal) desc.flags = FOVEA_FLAG_CAUSAL, desc.align = FOVEA_ALIGN_BOTTOM_RIGHT;
    return desc;
}

// `walk`: odd rows see every key, NaN too.
Bytes filled(uint32_t binding, uint64_t size_bytes, bool walk) {
    Bytes bytes(size_bytes);
    if (binding == FOVEA_BIND_MASK) {
        for (uint64_t n = 0; n < kQueries * kKeys; ++n) {
            const uint64_t i = n / kKeys;
            bytes[n] = std::byte((walk && i % 2) || shows(i, n % kKeys));
        }
        return bytes;
    }
    Random random(binding + 1);
    for (uint64_t n = 0; n < size_bytes / 4; ++n) {
        const uint64_t key = n / kDim % kKeys;
        float x = bell(random.next());
        if (binding != FOVEA_BIND_Q && key / 100 == 3) x = NAN;
        memcpy(&bytes[n * 4], &x, 4);
    }
    return bytes;
}

// Returns o followed by lse.
Bytes run_attention(const FoveaAttentionDesc& desc, uint32_t target, bool walk) {
    const Plan plan = plan_of(foveaPlanAttention, desc, cpu_device(1, target));
    const FoveaPlanInfo info = plan.info();
    EXPECT_EQ(info.kernel, FOVEA_KERNEL_FLASH);
    Buffers buffers;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (info.binding_mask >> i & 1) buffers[i] = filled(i, info.binding_bytes[i], walk);
    const Result<void> done = run_in_place(plan, buffers);
    EXPECT_TRUE(done) << done.error().text;
    Bytes results = buffers[FOVEA_BIND_O];
    results.insert(results.end(), buffers[FOVEA_BIND_LSE].begin(), buffers[FOVEA_BIND_LSE].end());
    return results;
}

TEST(MaskBlocks, leave_the_bits_of_a_run_that_cannot_skip_them) {
    for (const uint32_t target : runnable_targets()) {
        for (const bool causal : {false, true}) {
            SCOPED_TRACE(foveaCpuTargetName(target));
            const FoveaAttentionDesc desc = describe(causal);
            const Bytes skipped = run_attention(desc, target, false),
                        walked = run_attention(desc, target, true);
            const uint64_t row_bytes = kDim * 4;
            for (uint64_t row = 0; row < kHeads * kQueries; ++row) {
                if (row % kQueries % 2) continue;
                ASSERT_EQ(memcmp(&skipped[row * row_bytes], &walked[row * row_bytes], row_bytes), 0)
                    << "row " << row;
                const uint64_t lse = kHeads * kQueries * row_bytes + row * 4;
                ASSERT_EQ(memcmp(&skipped[lse], &walked[lse], 4), 0) << "lse of row " << row;
            }
            for (uint64_t n = 0; n < skipped.size() / 4; ++n)
                ASSERT_FALSE(std::isnan(element(skipped, FOVEA_F32, n))) << "element " << n;
        }
    }
}

}  // namespace
}  // namespace fovea::test
