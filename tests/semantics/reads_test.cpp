// Packed entries whose last one is shorter than a kernel's tile: reads for rows that do not exist must stay
// within the buffers. Walls after the inputs catch it on the CPU, instrumented shaders on a device
// (semantics.gpu_av).
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"
#include "support/number_types.hpp"

#include <algorithm>

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
    for (const FoveaDtype type : quantized_types()) {
        const uint32_t dim = type == FOVEA_F8_E5M2 ? 7 : std::max(8u, storage_block(type).numbers);
        Case c = packed_case(3);
        c.desc.k_type = c.desc.v_type = type;
        c.desc.dim_qk = c.desc.dim_v = dim;
        settle(c);
        expect_right(c);
    }
}

}  // namespace
}  // namespace fovea::test
