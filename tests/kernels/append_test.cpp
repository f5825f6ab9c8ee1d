// Appending to a cache: every byte of it, on every instruction set, against the rows' own arithmetic.
#include "kernels/operation_run.hpp"

#include "problem/half.hpp"
#include "reference/operation_loops.hpp"

#include <cstring>

namespace fovea::test {
namespace {

FoveaAppendDesc random_append(Random& random) {
    FoveaAppendDesc d{};
    d.struct_size = sizeof d;
    d.x_type = random_type(random), d.y_type = random_type(random);
    d.batch = 1 + uint32_t(random.below(3)), d.heads = 1 + uint32_t(random.below(4));
    d.dim = 1 + uint32_t(random.below(90)), d.len = 1 + random.below(9);
    d.has_batch_table = uint32_t(random.below(2));
    d.first_row = d.has_batch_table ? 0 : random.below(20);
    uint64_t rows = d.capacity = 1 + random.below(30);
    if (random.chance(0.5)) {
        d.page_size = 1 + uint32_t(random.below(6));
        d.page_count = 8 + uint32_t(random.below(20));
        d.block_table_pages = 1 + random.below(8);
        d.capacity = d.block_table_pages * d.page_size - random.below(d.page_size);
        rows = d.page_size;
    }
    d.x_strides = random_strides(random, d.heads, d.len, d.dim);
    d.y_strides = random_strides(random, d.heads, rows, d.dim);
    return d;
}

// Row after row, element after element.
Bytes expected_cache(const FoveaAppendDesc& given, const Buffers& buffers) {
    FoveaAppendDesc d = given;
    const auto packed = [&](FoveaStrides& s, uint64_t rows) {
        if (s.batch == 0 && s.head == 0 && s.row == 0)
            s = {int64_t(d.heads * rows * d.dim), int64_t(rows * d.dim), int64_t(d.dim)};
    };
    packed(d.x_strides, d.len);
    packed(d.y_strides, d.page_size ? d.page_size : d.capacity);
    Bytes cache = buffers[FOVEA_BIND_Y];
    FoveaHostBuffer bound[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        bound[i] = {const_cast<std::byte*>(buffers[i].data()), buffers[i].size()};
    bound[FOVEA_BIND_Y].data = cache.data();
    for (uint64_t row = 0; row < uint64_t{d.batch} * d.heads * d.len; ++row)
        reference::append_row(d, bound, row);
    return cache;
}

TEST(Append, writes_the_rows_that_it_should_and_no_other) {
    for_cases(200, [](Random& random) {
        const FoveaAppendDesc d = random_append(random);
        const FoveaPlanInfo info = plan_of(foveaPlanAppend, d, facts_of(0, 1)).info();
        const Buffers buffers = random_buffers(random, info, d.x_type, FOVEA_F32);
        const Bytes expected = expected_cache(d, buffers);
        const uint64_t shuffle = random.next();
        for (const uint32_t target : runnable_targets()) {
            SCOPED_TRACE(foveaCpuTargetName(target));
            const Plan plan = plan_of(foveaPlanAppend, d, facts_of(target, 3));
            EXPECT_TRUE(run(plan, buffers, 1) == expected);
            EXPECT_TRUE(run(plan, buffers, 3, shuffle) == expected);
        }
    });
}

}  // namespace
}  // namespace fovea::test
