// Packed entries whose last one is shorter than a kernel's tile: reads for rows that do not exist must stay
// within the buffers. Walls after the inputs catch it on the CPU, instrumented shaders on a device
// (semantics.gpu_av).
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"

#include <utility>

namespace fovea::test {
namespace {

Case packed_case(uint32_t heads_q) {
    Case c = plain_case(81, 3, heads_q, 1, 40, 24, 8, 8);
    c.desc.flags |= FOVEA_FLAG_VARLEN;
    c.table = {{0, 40, 0, 24}, {40, 3, 24, 5}, {43, 1, 29, 1}};
    c.desc.packed_rows_q = 44, c.desc.packed_rows_kv = 30;
    settle(c);
    return c;
}

TEST(Reads, rows_of_a_short_last_entry_stay_within_the_buffers) {
    for (const uint32_t heads_q : {1u, 3u}) expect_right(packed_case(heads_q));
}

// Fewer columns than a kernel's threads hold, of quads and not.
TEST(Reads, compressed_rows_stay_within_the_buffers) {
    const std::pair<FoveaDtype, uint32_t> kinds[] = {
        {FOVEA_F8_E4M3, 8}, {FOVEA_F8_E5M2, 7}, {FOVEA_Q8_0, 32}, {FOVEA_Q4_0, 32}};
    for (const auto& [type, dim] : kinds) {
        Case c = packed_case(3);
        c.desc.k_type = c.desc.v_type = type;
        c.desc.dim_qk = c.desc.dim_v = dim;
        settle(c);
        expect_right(c);
    }
}

}  // namespace
}  // namespace fovea::test
