// Appending to a cache: every byte of it, on every instruction set, against the rows' own arithmetic.
#include "kernels/operation_run.hpp"

#include "reference/operation_loops.hpp"

#include <fovea/half.hpp>

#include <cstring>

namespace fovea::test {
namespace {

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
        const FoveaAppendDesc d = random_append(random, 90);
        const FoveaPlanInfo info = plan_of(foveaPlanAppend, d, cpu_device(1)).info();
        const Buffers buffers = random_buffers(random, info, d.x_type, FOVEA_F32);
        const Bytes expected = expected_cache(d, buffers);
        const uint64_t shuffle = random.next();
        for (const uint32_t target : runnable_targets()) {
            SCOPED_TRACE(foveaCpuTargetName(target));
            const Plan plan = plan_of(foveaPlanAppend, d, cpu_device(3, target));
            EXPECT_TRUE(run(plan, buffers, 1) == expected);
            EXPECT_TRUE(run(plan, buffers, 3, shuffle) == expected);
        }
    });
}

}  // namespace
}  // namespace fovea::test
