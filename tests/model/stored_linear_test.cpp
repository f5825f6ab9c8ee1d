// Linear layers on weights as files store them, against the dequantised matrix in float64.
#include "model/stored_linear.hpp"

#include "cpu/block_rows.hpp"
#include "cpu/target.hpp"
#include "model/stored_weights.hpp"

#include <fovea/thread_pool.hpp>

namespace fovea {
namespace {

const WeightType kTypes[] = {WeightType::f32,  WeightType::f16,  WeightType::bf16, WeightType::q4_0,
                             WeightType::q8_0, WeightType::q4_k, WeightType::q5_k, WeightType::q6_k};

TEST(StoredLinear, gives_the_dequantised_product_on_every_instruction_set) {
    std::mt19937 random(20261122);
    ThreadPool pool(2);
    const FoveaParallel parallel = pool.parallel();
    size_t targets = 0;
    for (uint32_t target = 1; target < cpu::kTargetCount; ++target) {
        if (!(cpu::runnable_targets() >> target & 1u)) continue;
        ++targets;
        SCOPED_TRACE(cpu::target_name(target));
        for (const WeightType type : kTypes)
            for (const auto& [rows, blocks] : {std::pair{1u, 1u}, {5u, 3u}, {131u, 2u}, {700u, 7u}}) {
                // Numbers of their own may end in a part of a vector.
                const uint64_t elements = weight_block_elements(type);
                const uint64_t columns = elements == 1 ? 37 * blocks : elements * blocks;
                const Weight w(type, rows, columns, random);
                const F32Tensor x = random_rows(2, columns, random);
                const F32Tensor bias =
                    rows % 2 == 0 ? reshaped(random_rows(1, rows, random), {rows}) : F32Tensor(Shape{0});
                ASSERT_TRUE(has_stored_rows(w.stored));
                F32Tensor y({3, rows}), threaded({2, rows});
                std::fill(y.values.begin(), y.values.end(), NAN);
                const float* const b = bias.values.empty() ? nullptr : bias.values.data();
                stored_rows_on_cpu(target, w.stored, b, x, y, nullptr);
                expect_row_verdict(w, bias, x, y);
                EXPECT_TRUE(std::all_of(y.row(2).begin(), y.row(2).end(), [](float v) { return v != v; }))
                    << "nothing is written behind the last row";
                y.values.resize(2 * rows);
                stored_rows_on_cpu(target, w.stored, b, x, threaded, &parallel);
                EXPECT_EQ(threaded.values, y.values) << "threads change no bit";
            }
    }
    EXPECT_GE(targets, 2u);
}

// What the runner does with many rows, and with types that have no kernel of their own.
TEST(StoredLinear, many_rows_and_other_types_take_the_engines_linear_layer) {
    std::mt19937 random(7);
    const std::unique_ptr<EngineRunner> engine = make_cpu_runner();
    for (const WeightType type : {WeightType::q4_0, WeightType::bf16, WeightType::q4_1, WeightType::q5_0,
                                  WeightType::q5_1, WeightType::q6_k})
        for (const uint64_t rows : {1u, 4u, 9u}) {
            const Weight w(type, 67, 512, random);
            const F32Tensor x = random_rows(rows, 512, random),
                            bias = reshaped(random_rows(1, 67, random), {67});
            F32Tensor y({rows, 67});
            const Result<void> run = engine->stored_linear(w.stored, bias, x, y);
            ASSERT_TRUE(run) << run.error().text;
            expect_row_verdict(w, bias, x, y);
        }
}

}  // namespace
}  // namespace fovea
