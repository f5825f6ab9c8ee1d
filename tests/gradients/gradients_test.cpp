// Requirements for gradients of attention on every backend: the sweep on every instruction set, relations
// between calls, values that must not reach a result, and errors.
#include "gradients/gradient_sweep.hpp"
#include "support/case_generator.hpp"
#include "support/cpu_device.hpp"
#include "support/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace fovea::test {
namespace {

// Executors of the CPU by name: the loops, and the vector kernels of every instruction set that runs here;
// the others are printed as skipped.
std::vector<std::string> cpu_executors() {
    std::vector<std::string> names{"plain"};
    Case c = plain_case(1, 1, 1, 1, 3, 5, 8, 8);
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    settle(c);
    const Result<GradientCase> g = prepare_gradients(std::move(c), attention_backward());
    for (uint32_t id = 1; g && id < 32; ++id) {
        const std::string target = foveaCpuTargetName(id), name = "cpu@" + target;
        if (target == "unknown") break;
        std::string error;
        const std::unique_ptr<Executor> executor = make_executor(name, error);
        if (!executor) continue;
        const Outcome outcome = executor->run_backward(g->c.desc, g->backward, g->clean);
        if (outcome.ran())
            names.push_back(name);
        else
            printf("skipped %s: %s\n", name.c_str(), outcome.text.c_str());
    }
    return names;
}

void on_each_executor(const std::function<void(Executor&)>& body) {
    static const std::vector<std::string> names = cpu_executors();
    ASSERT_GT(names.size(), 1u);
    for (const std::string& name : names) {
        SCOPED_TRACE(name);
        std::string error;
        const std::unique_ptr<Executor> executor = make_executor(name, error);
        ASSERT_TRUE(executor) << error;
        body(*executor);
    }
}

// A call of several heads and entries whose sizes all differ.
Case call_of(uint64_t seed, const std::function<void(FoveaAttentionDesc&)>& change = {}) {
    Case c = plain_case(seed, 2, 6, 3, 13, 21, 10, 7);
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    if (change) change(c.desc);
    settle(c);
    return c;
}

std::vector<float> floats(const Bytes& bytes) {
    std::vector<float> out(bytes.size() / 4);
    if (!out.empty()) memcpy(out.data(), bytes.data(), out.size() * 4);
    return out;
}

GradientCase prepared(Case c, const FoveaAttentionBackwardDesc& backward) {
    Result<GradientCase> g = prepare_gradients(std::move(c), backward);
    EXPECT_TRUE(g) << g.error().text;
    return g ? std::move(*g) : GradientCase{};
}

Tensors run(Executor& executor, const FoveaAttentionDesc& desc, const FoveaAttentionBackwardDesc& backward,
            const Tensors& inputs, const ExecuteOptions& options = {}) {
    const Outcome outcome = executor.run_backward(desc, backward, inputs, options);
    EXPECT_TRUE(outcome.ran()) << outcome.text;
    return outcome.outputs;
}

TEST(Gradients, every_instruction_set_agrees_with_float64_on_random_calls) {
    on_each_executor([](Executor& executor) {
        const GradientSweep result = sweep_gradients(executor, 11, 300);
        EXPECT_TRUE(result.failures.empty()) << result.summary();
        EXPECT_GT(result.passed, 290u) << result.summary();
    });
}

TEST(Gradients, rows_of_the_masked_logits_gradient_sum_to_zero_also_with_dropout) {
    for (const float dropout : {0.0f, 0.4f}) {
        const GradientCase g = prepared(call_of(5,
                                                [&](FoveaAttentionDesc& d) {
                                                    d.bias.present = 1, d.bias.batch = d.batch,
                                                    d.bias.heads = d.heads_q;
                                                    d.dropout_p = dropout;
                                                    d.flags |= FOVEA_FLAG_CAUSAL;
                                                    d.align = FOVEA_ALIGN_BOTTOM_RIGHT;
                                                }),
                                        attention_backward(FOVEA_GRAD_BIAS));
        on_each_executor([&](Executor& executor) {
            const std::vector<float> dbias =
                floats(run(executor, g.c.desc, g.backward, g.clean)[FOVEA_BIND_DBIAS]);
            ASSERT_EQ(dbias.size(), 2u * 6 * 13 * 21);
            for (size_t row = 0; row < dbias.size() / 21; ++row) {
                double sum = 0, size = 0;
                for (size_t j = 0; j < 21; ++j)
                    sum += dbias[row * 21 + j], size += std::fabs(dbias[row * 21 + j]);
                EXPECT_LE(std::fabs(sum), 2e-6 * (1 + size)) << row;
            }
        });
    }
}

TEST(Gradients, products_with_queries_and_with_keys_have_one_sum) {
    const GradientCase g =
        prepared(call_of(6, [](FoveaAttentionDesc& d) { d.softcap = 2; }), attention_backward());
    on_each_executor([&](Executor& executor) {
        const Tensors t = run(executor, g.c.desc, g.backward, g.clean);
        const std::vector<float> q = floats(g.clean[FOVEA_BIND_Q]), dq = floats(t[FOVEA_BIND_DQ]),
                                 k = floats(g.clean[FOVEA_BIND_K]), dk = floats(t[FOVEA_BIND_DK]);
        double queries = 0, keys = 0;
        for (size_t n = 0; n < q.size(); ++n) queries += double(q[n]) * dq[n];
        for (size_t n = 0; n < k.size(); ++n) keys += double(k[n]) * dk[n];
        EXPECT_NEAR(queries, keys, 1e-4 * (1 + std::fabs(queries)));
        EXPECT_GT(std::fabs(queries), 1e-3);
    });
}

TEST(Gradients, twice_the_upstream_gradient_gives_twice_of_everything_to_the_bit) {
    const GradientCase g = prepared(
        call_of(7,
                [](FoveaAttentionDesc& d) { d.flags |= FOVEA_FLAG_ALIBI, d.align = FOVEA_ALIGN_TOP_LEFT; }),
        attention_backward(FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V | FOVEA_GRAD_ALIBI));
    Tensors twice = g.clean;
    for (int64_t n = 0; n < int64_t(twice[FOVEA_BIND_DO].size() / 4); ++n)
        write_float(twice[FOVEA_BIND_DO], FOVEA_F32, n, 2 * read_float(twice[FOVEA_BIND_DO], FOVEA_F32, n));
    on_each_executor([&](Executor& executor) {
        const Tensors once = run(executor, g.c.desc, g.backward, g.clean),
                      doubled = run(executor, g.c.desc, g.backward, twice);
        for (const FoveaBinding binding : {FOVEA_BIND_DQ, FOVEA_BIND_DK, FOVEA_BIND_DV, FOVEA_BIND_DALIBI}) {
            const std::vector<float> a = floats(once[binding]), b = floats(doubled[binding]);
            for (size_t n = 0; n < a.size(); ++n) ASSERT_EQ(2 * a[n], b[n]) << binding << " " << n;
        }
    });
}

TEST(Gradients, accumulation_adds_to_what_the_buffer_holds) {
    const GradientCase g = prepared(call_of(8), attention_backward());
    on_each_executor([&](Executor& executor) {
        const Tensors alone = run(executor, g.c.desc, g.backward, g.clean);
        FoveaAttentionBackwardDesc adding = g.backward;
        adding.accumulate = FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V;
        Tensors inputs = g.clean;
        for (const FoveaBinding binding : {FOVEA_BIND_DQ, FOVEA_BIND_DK, FOVEA_BIND_DV})
            inputs[binding] = alone[binding];
        const Tensors sum = run(executor, g.c.desc, adding, inputs);
        for (const FoveaBinding binding : {FOVEA_BIND_DQ, FOVEA_BIND_DK, FOVEA_BIND_DV}) {
            const std::vector<float> a = floats(alone[binding]), b = floats(sum[binding]);
            for (size_t n = 0; n < a.size(); ++n)
                ASSERT_NEAR(2 * a[n], b[n], 1e-6 * (1 + std::fabs(a[n]))) << binding;
        }
    });
}

// Keys of one call in two parts, each with the merged o and lse: their dq add up, and each has its own dk and
// dv.
TEST(Gradients, a_call_split_over_its_keys_gives_the_same_from_the_merged_o_and_lse) {
    const GradientCase g = prepared(call_of(9), attention_backward());
    constexpr uint64_t kCut = 8;
    const auto part = [&](uint64_t first, uint64_t count, Executor& executor) {
        FoveaAttentionDesc d = g.c.desc;
        d.len_kv = count;
        d.k_strides = {int64_t(3 * count * 10), int64_t(count * 10), 10};
        d.v_strides = {int64_t(3 * count * 7), int64_t(count * 7), 7};
        Tensors inputs = g.clean;
        const auto take = [&](FoveaBinding binding, size_t dim) {
            inputs[binding].clear();
            for (size_t head = 0; head < 6; ++head) {
                const auto from = g.clean[binding].begin() + ptrdiff_t((head * 21 + first) * dim * 4);
                inputs[binding].insert(inputs[binding].end(), from, from + ptrdiff_t(count * dim * 4));
            }
        };
        take(FOVEA_BIND_K, 10);
        take(FOVEA_BIND_V, 7);
        return run(executor, d, g.backward, inputs);
    };
    on_each_executor([&](Executor& executor) {
        const Tensors whole = run(executor, g.c.desc, g.backward, g.clean), left = part(0, kCut, executor),
                      right = part(kCut, 21 - kCut, executor);
        const std::vector<float> dq = floats(whole[FOVEA_BIND_DQ]), a = floats(left[FOVEA_BIND_DQ]),
                                 b = floats(right[FOVEA_BIND_DQ]);
        for (size_t n = 0; n < dq.size(); ++n) ASSERT_NEAR(dq[n], a[n] + b[n], 1e-5) << n;
        const std::vector<float> dv = floats(whole[FOVEA_BIND_DV]), dv_left = floats(left[FOVEA_BIND_DV]);
        for (size_t head = 0; head < 6; ++head)
            for (size_t n = 0; n < kCut * 7; ++n)
                ASSERT_NEAR(dv[head * 21 * 7 + n], dv_left[head * kCut * 7 + n], 1e-5);
    });
}

TEST(Gradients, grouped_heads_give_the_sum_of_repeated_ones) {
    const GradientCase g = prepared(call_of(10), attention_backward());
    FoveaAttentionDesc repeated = g.c.desc;
    repeated.heads_kv = repeated.heads_q;
    Tensors inputs = g.clean;
    for (const auto& [binding, dim] :
         {std::pair{FOVEA_BIND_K, size_t{10}}, std::pair{FOVEA_BIND_V, size_t{7}}}) {
        inputs[binding].clear();
        for (size_t head = 0; head < 12; ++head) {
            const auto from = g.clean[binding].begin() + ptrdiff_t((head / 2) * 21 * dim * 4);
            inputs[binding].insert(inputs[binding].end(), from, from + ptrdiff_t(21 * dim * 4));
        }
    }
    on_each_executor([&](Executor& executor) {
        const Tensors grouped = run(executor, g.c.desc, g.backward, g.clean),
                      each = run(executor, repeated, g.backward, inputs);
        EXPECT_EQ(floats(grouped[FOVEA_BIND_DQ]), floats(each[FOVEA_BIND_DQ]));
        const std::vector<float> dk = floats(grouped[FOVEA_BIND_DK]), twelve = floats(each[FOVEA_BIND_DK]);
        for (size_t head = 0; head < 6; ++head)
            for (size_t n = 0; n < 210; ++n)
                ASSERT_NEAR(dk[head * 210 + n], twelve[2 * head * 210 + n] + twelve[(2 * head + 1) * 210 + n],
                            1e-5);
    });
}

TEST(Gradients, a_nan_in_a_key_reaches_the_rows_that_see_it_and_their_keys_alone) {
    Case c = plain_case(12, 1, 1, 1, 12, 12, 5, 5);
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    c.desc.flags = FOVEA_FLAG_WINDOW, c.desc.align = FOVEA_ALIGN_TOP_LEFT;
    c.desc.window_left = 2, c.desc.window_right = 0;
    settle(c);
    const GradientCase g = prepared(std::move(c), attention_backward());
    on_each_executor([&](Executor& executor) {
        Tensors inputs = g.clean;
        // Key 4 is seen by rows 4, 5 and 6, which see keys 2 to 6. Their lse and o are NaN as the forward
        // call leaves them.
        constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
        write_float(inputs[FOVEA_BIND_K], FOVEA_F32, 4 * 5 + 1, kNan);
        for (int64_t i = 4; i <= 6; ++i) {
            write_float(inputs[FOVEA_BIND_LSE], FOVEA_F32, i, kNan);
            for (int64_t n = 0; n < 5; ++n) write_float(inputs[FOVEA_BIND_O], FOVEA_F32, i * 5 + n, kNan);
        }
        const Tensors t = run(executor, g.c.desc, g.backward, inputs);
        for (int64_t n = 0; n < 12; ++n)
            for (int64_t x = 0; x < 5; ++x) {
                EXPECT_EQ(std::isnan(read_float(t[FOVEA_BIND_DQ], FOVEA_F32, n * 5 + x)), n >= 4 && n <= 6)
                    << n;
                EXPECT_EQ(std::isnan(read_float(t[FOVEA_BIND_DK], FOVEA_F32, n * 5 + x)), n >= 2 && n <= 6)
                    << n;
                EXPECT_EQ(std::isnan(read_float(t[FOVEA_BIND_DV], FOVEA_F32, n * 5 + x)), n >= 2 && n <= 6)
                    << n;
            }
    });
}

// Keys are along the lanes and rows are streamed: a NaN row must not reach the keys that are masked for it,
// whether they are before its visible keys, after them or on both sides.
TEST(Gradients, a_nan_in_a_query_reaches_its_row_and_the_keys_that_it_sees_alone) {
    struct Window {
        int64_t left, right;  // -1: without an end
    };
    for (const auto& [left, right] : {Window{2, 0}, Window{2, -1}, Window{-1, 1}}) {
        Case c = plain_case(12, 1, 1, 1, 12, 12, 5, 5);
        c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
        c.desc.flags = FOVEA_FLAG_WINDOW, c.desc.align = FOVEA_ALIGN_TOP_LEFT;
        c.desc.window_left = left, c.desc.window_right = right;
        settle(c);
        const GradientCase g = prepared(std::move(c), attention_backward());
        on_each_executor([&](Executor& executor) {
            Tensors inputs = g.clean;
            constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
            constexpr int64_t kRow = 6;
            write_float(inputs[FOVEA_BIND_Q], FOVEA_F32, kRow * 5 + 1, kNan);
            write_float(inputs[FOVEA_BIND_LSE], FOVEA_F32, kRow, kNan);
            for (int64_t n = 0; n < 5; ++n) write_float(inputs[FOVEA_BIND_O], FOVEA_F32, kRow * 5 + n, kNan);
            const Tensors t = run(executor, g.c.desc, g.backward, inputs);
            for (int64_t n = 0; n < 12; ++n) {
                const bool seen = (left < 0 || n >= kRow - left) && (right < 0 || n <= kRow + right);
                for (int64_t x = 0; x < 5; ++x) {
                    EXPECT_EQ(std::isnan(read_float(t[FOVEA_BIND_DQ], FOVEA_F32, n * 5 + x)), n == kRow) << n;
                    EXPECT_EQ(std::isnan(read_float(t[FOVEA_BIND_DK], FOVEA_F32, n * 5 + x)), seen) << n;
                    EXPECT_EQ(std::isnan(read_float(t[FOVEA_BIND_DV], FOVEA_F32, n * 5 + x)), seen) << n;
                }
            }
        });
    }
}

// An lse of minus infinity says that its row sees nothing, whatever the masks say and o and its gradient
// hold.
TEST(Gradients, a_row_whose_lse_is_minus_infinity_has_no_gradient) {
    const GradientCase g = prepared(call_of(16), attention_backward());
    std::string error;
    const std::unique_ptr<Executor> reference = make_executor("reference", error);
    ASSERT_TRUE(reference) << error;
    Tensors inputs = g.clean;
    constexpr int64_t kRow = 4;
    write_float(inputs[FOVEA_BIND_LSE], FOVEA_F32, kRow, -std::numeric_limits<float>::infinity());
    for (int64_t n = 0; n < 7; ++n)
        write_float(inputs[FOVEA_BIND_O], FOVEA_F32, kRow * 7 + n, std::numeric_limits<float>::quiet_NaN());
    const Tensors expected = run(*reference, g.c.desc, g.backward, inputs);
    on_each_executor([&](Executor& executor) {
        const Tensors t = run(executor, g.c.desc, g.backward, inputs);
        for (int64_t n = 0; n < 10; ++n)
            EXPECT_EQ(read_float(t[FOVEA_BIND_DQ], FOVEA_F32, kRow * 10 + n), 0.0f);
        for (const FoveaBinding binding : {FOVEA_BIND_DQ, FOVEA_BIND_DK, FOVEA_BIND_DV}) {
            const std::vector<float> a = floats(expected[binding]), b = floats(t[binding]);
            for (size_t n = 0; n < a.size(); ++n) ASSERT_NEAR(a[n], b[n], 1e-4) << binding << " " << n;
        }
    });
}

TEST(Gradients, a_batch_entry_alone_has_the_bits_that_it_has_in_its_batch) {
    const GradientCase g = prepared(
        call_of(13, [](FoveaAttentionDesc& d) { d.flags |= FOVEA_FLAG_FIXED_SPLITS; }), attention_backward());
    FoveaAttentionDesc one = g.c.desc;
    one.batch = 1;
    on_each_executor([&](Executor& executor) {
        const Tensors both = run(executor, g.c.desc, g.backward, g.clean);
        Tensors inputs = g.clean;
        for (Bytes& bytes : inputs) bytes.resize(bytes.size() / 2);
        const Tensors alone = run(executor, one, g.backward, inputs);
        for (const FoveaBinding binding : {FOVEA_BIND_DQ, FOVEA_BIND_DK, FOVEA_BIND_DV})
            EXPECT_TRUE(std::equal(alone[binding].begin(), alone[binding].end(), both[binding].begin()))
                << binding;
    });
}

TEST(Gradients, what_cannot_be_computed_is_refused_by_name) {
    struct Refusal {
        const char* field;
        std::function<void(FoveaAttentionDesc&, FoveaAttentionBackwardDesc&)> change;
        FoveaResult code = FOVEA_INVALID_ARGUMENT;
    };
    const Refusal refusals[] = {
        {"struct_size", [](auto&, auto& w) { w.struct_size = 0; }, FOVEA_ABI_MISMATCH},
        {"gradients", [](auto&, auto& w) { w.gradients = 1u << 6; }},
        {"gradients", [](auto&, auto& w) { w.gradients = FOVEA_GRAD_BIAS; }},
        {"gradients", [](auto&, auto& w) { w.gradients = FOVEA_GRAD_ALIBI; }},
        {"gradients", [](auto&, auto& w) { w.gradients = FOVEA_GRAD_SINKS; }},
        {"accumulate", [](auto&, auto& w) { w.gradients = FOVEA_GRAD_Q, w.accumulate = FOVEA_GRAD_K; }},
        {"has_lse_gradient", [](auto&, auto& w) { w.has_lse_gradient = 2; }},
        {"reserved0", [](auto&, auto& w) { w.reserved0 = 1; }},
        {"do_type", [](auto&, auto& w) { w.do_type = FOVEA_U8; }},
        {"dv_type", [](auto&, auto& w) { w.dv_type = FOVEA_I32; }},
        {"dq_strides",
         [](auto&, auto& w) {
             w.dq_strides = {130, 130, 9};
         }},
        {"dk_strides",
         [](auto&, auto& w) {
             w.dk_strides = {300, 100, 9};
         }},
        {"dv_strides",
         [](auto&, auto& w) {
             w.dv_strides = {300, 100, 6};
         }},
        {"dk_strides.batch",
         [](auto&, auto& w) {
             w.dk_strides = {-2, 0, 0};
         }},
        {"kernel", [](auto&, auto& w) { w.kernel = FoveaKernel(0x7fff); }},
        {"kernel", [](auto&, auto& w) { w.kernel = FOVEA_KERNEL_STAGED; }, FOVEA_UNSUPPORTED},
        {"page_size", [](auto& d, auto&) { d.page_size = 8, d.page_count = 9, d.block_table_pages = 3; },
         FOVEA_UNSUPPORTED},
        {"page_size",
         [](auto& d, auto&) {
             d.flags |= FOVEA_FLAG_VARLEN;
             d.page_size = 8, d.page_count = 9, d.block_table_pages = 3;
         },
         FOVEA_UNSUPPORTED},
        {"do_strides",
         [](auto& d, auto& w) {
             d.flags |= FOVEA_FLAG_VARLEN, d.packed_rows_q = 40;
             w.do_strides = {400, 10, 60};
         }},
        {"heads_q", [](auto& d, auto&) { d.heads_q = 0; }},
    };
    for (const Refusal& refusal : refusals) {
        FoveaAttentionDesc d = call_of(14).desc;
        FoveaAttentionBackwardDesc w = attention_backward();
        refusal.change(d, w);
        const FoveaDeviceProperties properties = cpu_device(1);
        FoveaPlan plan = nullptr;
        Diag diag;
        EXPECT_EQ(foveaPlanAttentionBackward(&properties, &d, &w, nullptr, &plan, &diag), refusal.code)
            << refusal.field;
        EXPECT_EQ(plan, nullptr);
        EXPECT_STREQ(diag.field, refusal.field) << diag.text;
        EXPECT_NE(diag.text[0], '\0');
    }
}

TEST(Gradients, a_plan_says_what_it_computes) {
    const Result<Plan> plan = plan_attention_backward(cpu_device(1), call_of(15).desc, attention_backward());
    ASSERT_TRUE(plan) << plan.error().text;
    const FoveaPlanInfo info = plan->info();
    EXPECT_EQ(info.visited_pairs, 2.0 * 6 * 13 * 21);
    EXPECT_EQ(info.flops, info.visited_pairs * ((4 * 10 + 2 * 7) + 4 * (10 + 7)));
    const auto flops_of_a_pair = [&](uint32_t gradients) {
        const Result<Plan> part =
            plan_attention_backward(cpu_device(1), call_of(15).desc, attention_backward(gradients));
        return part ? part->info().flops / info.visited_pairs : 0;
    };
    EXPECT_EQ(flops_of_a_pair(FOVEA_GRAD_Q), 4 * 10 + 2 * 7);
    EXPECT_EQ(flops_of_a_pair(FOVEA_GRAD_K), 4 * 10 + 2 * 7);
    EXPECT_EQ(flops_of_a_pair(FOVEA_GRAD_V), 2 * 10 + 2 * 7);
    const std::string text = plan->explain();
    for (const char* line :
         {"gradients", "reads DO", "reads O", "reads LSE", "writes DQ", "writes DK", "writes DV"})
        EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
}

// Each single gradient, and all of them: the slices cover the whole work, and a budget divides it down to a
// head's or a row's sum.
TEST(Gradients, no_slice_costs_more_than_the_plan_says) {
    const auto with_all = [](FoveaAttentionDesc& d) {
        d.flags |= FOVEA_FLAG_ALIBI | FOVEA_FLAG_SINKS, d.align = FOVEA_ALIGN_TOP_LEFT;
        d.bias.present = 1;
    };
    const Case c = call_of(16, with_all);  // 2 entries, 6 heads over 3, 13 queries, 21 keys, 10 and 7 columns
    constexpr uint32_t kAll =
        FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V | FOVEA_GRAD_BIAS | FOVEA_GRAD_ALIBI | FOVEA_GRAD_SINKS;
    for (const FoveaKernel kernel : {FOVEA_KERNEL_FLASH, FOVEA_KERNEL_PLAIN, FOVEA_KERNEL_REFERENCE})
        for (uint32_t gradients = 1; gradients <= kAll;
             gradients = gradients == FOVEA_GRAD_SINKS ? kAll : gradients * 2) {
            SCOPED_TRACE(testing::Message() << kernel_name(kernel) << " of " << gradients);
            FoveaAttentionDesc desc = c.desc;
            desc.max_slice_cost = 1;
            FoveaAttentionBackwardDesc backward = attention_backward(gradients);
            backward.kernel = kernel;
            const Result<Plan> plan = plan_attention_backward(cpu_device(1), desc, backward);
            ASSERT_TRUE(plan) << plan.error().text;
            const FoveaPlanInfo info = plan->info();
            EXPECT_GT(info.flops, 0);
            EXPECT_GE(info.slice_count, gradients == FOVEA_GRAD_SINKS || gradients == FOVEA_GRAD_ALIBI ? 6u
                                        : gradients == FOVEA_GRAD_BIAS                                 ? 1u
                                                                                                       : 2u);
            EXPECT_GE(info.max_slice_flops * double(info.slice_count), info.flops);
            if (gradients == FOVEA_GRAD_SINKS) {
                EXPECT_EQ(info.flops,
                          6 * 2.0 * 7 * 2 * 13);  // for heads, columns of do and o, rows of the batch
                EXPECT_GE(info.max_slice_flops, info.flops / 6);
            }
            if (gradients == kAll) break;
        }
}

// o is an input here: its rows may be one and the same, as those of do. The result is that of copies.
TEST(Gradients, o_and_do_may_be_broadcast) {
    constexpr int64_t kB = 2, kH = 2, kRows = 4, kDim = 8;
    Random random(17);
    const auto draw = [&](size_t count) {
        std::vector<float> values(count);
        for (float& value : values) value = float(random.next() & 0xffff) / 65536 - 0.5f;
        return values;
    };
    constexpr size_t kAll = kB * kH * kRows * kDim;
    std::vector<float> q = draw(kAll), k = draw(kAll), v = draw(kAll), lse(kB * kH * kRows, 1.5f);
    const std::vector<float> rows = draw(kAll);
    const FoveaStrides layouts[] = {{FOVEA_BROADCAST, FOVEA_BROADCAST, FOVEA_BROADCAST},
                                    {FOVEA_BROADCAST, kRows * kDim, kDim},
                                    {kH * kRows * kDim, FOVEA_BROADCAST, kDim},
                                    {FOVEA_BROADCAST, FOVEA_BROADCAST, kDim}};
    for (const FoveaKernel kernel : {FOVEA_KERNEL_FLASH, FOVEA_KERNEL_PLAIN, FOVEA_KERNEL_REFERENCE})
        for (const FoveaStrides& layout : layouts)
            for (const bool of_o : {true, false}) {
                std::vector<float> results[2];
                for (const bool copied : {false, true}) {
                    Attention call;
                    call.batch(kB).heads(kH).lengths(kRows, kRows).dims(kDim);
                    FoveaAttentionBackwardDesc backward = attention_backward(FOVEA_GRAD_Q);
                    backward.kernel = kernel;
                    const FoveaStrides strides = copied ? FoveaStrides{} : layout;
                    (of_o ? call.desc.o_strides : backward.do_strides) = strides;
                    std::vector<float> other(kAll, 0.25f), spread = rows;
                    for (int64_t n = 0; copied && n < int64_t(kAll); ++n) {
                        const int64_t b = n / (kH * kRows * kDim), h = n / (kRows * kDim) % kH,
                                      i = n / kDim % kRows;
                        const auto step = [](int64_t stride) { return std::max<int64_t>(stride, 0); };
                        spread[size_t(n)] = rows[size_t(b * step(layout.batch) + h * step(layout.head) +
                                                        i * step(layout.row) + n % kDim)];
                    }
                    const Result<Plan> plan = plan_attention_backward(cpu_device(1), call, backward);
                    ASSERT_TRUE(plan) << plan.error().text;
                    const FoveaBinding shared = of_o ? FOVEA_BIND_O : FOVEA_BIND_DO;
                    uint64_t elements = kDim;
                    if (copied || layout.batch > 0) elements += (kB - 1) * kH * kRows * kDim;
                    if (copied || layout.head > 0) elements += (kH - 1) * kRows * kDim;
                    if (copied || layout.row > 0) elements += (kRows - 1) * kDim;
                    EXPECT_EQ(plan->info().binding_bytes[shared], elements * 4);
                    results[copied].assign(kAll, 0);
                    const auto bytes = [](std::vector<float>& values) {
                        return FoveaHostBuffer{values.data(), values.size() * 4};
                    };
                    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
                    bindings[FOVEA_BIND_Q] = bytes(q), bindings[FOVEA_BIND_K] = bytes(k);
                    bindings[FOVEA_BIND_V] = bytes(v), bindings[FOVEA_BIND_LSE] = bytes(lse);
                    bindings[FOVEA_BIND_O] = bytes(of_o ? spread : other);
                    bindings[FOVEA_BIND_DO] = bytes(of_o ? other : spread);
                    bindings[FOVEA_BIND_DQ] = bytes(results[copied]);
                    Workspace workspace;
                    const Result<void> ran = run_on_host(*plan, bindings, workspace);
                    ASSERT_TRUE(ran) << ran.error().text;
                }
                EXPECT_EQ(results[0], results[1]) << kernel_name(kernel) << (of_o ? " o" : " do");
            }
}

}  // namespace
}  // namespace fovea::test
