#include <gtest/gtest.h>
#include <fovea/inspect.hpp>
#include <fovea/model.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// One problem of 2 batch entries, 4 query heads on 2 key heads, 5 queries, 7 keys, with every buffer it may
// need.
struct Call {
    Attention attention;
    F32Tensor q{{2, 4, 5, 6}}, k{{2, 2, 7, 6}}, v{{2, 2, 7, 3}}, o{{2, 4, 5, 3}}, weights{{2, 4, 5, 7}};
    F32Tensor masked{{2, 4, 5, 7}}, lse{{2, 4, 5}}, bias{{1, 4, 5, 7}}, slopes{{4}}, sinks{{4}};
    std::vector<uint8_t> mask = std::vector<uint8_t>(5 * 7 + 1, 1);
    std::vector<FoveaSequence> table = {{0, 5, 0, 7}, {0, 4, 0, 6}};
    std::vector<int32_t> pages = {0, 2,  4,
                                  3, -1, 1};  // three of an entry; there are four, so that two lead nowhere
    FoveaHostBuffer buffers[FOVEA_BIND_COUNT] = {};

    explicit Call(uint64_t seed) {
        TorchGenerator generator(seed);
        for (F32Tensor* tensor : {&q, &k, &v, &bias, &slopes, &sinks}) generator.randn(tensor->values);
        for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 != 0 ? 1 : 0;
        attention.batch(2).heads(4, 2).lengths(5, 7).dims(6, 3);
        bind(FOVEA_BIND_Q, q);
        bind(FOVEA_BIND_K, k);
        bind(FOVEA_BIND_V, v);
        bind(FOVEA_BIND_O, o);
        bind(FOVEA_BIND_WEIGHTS, weights);
        bind(FOVEA_BIND_MASKED, masked);
        bind(FOVEA_BIND_LSE, lse);
        bind(FOVEA_BIND_BIAS, bias);
        bind(FOVEA_BIND_ALIBI, slopes);
        bind(FOVEA_BIND_SINKS, sinks);
        buffers[FOVEA_BIND_MASK] = {mask.data(), mask.size()};
        buffers[FOVEA_BIND_BLOCK_TABLE] = {pages.data(), pages.size() * sizeof(int32_t)};
        buffers[FOVEA_BIND_SEQUENCES] = {table.data(), table.size() * sizeof(FoveaSequence)};
    }
    void bind(FoveaBinding binding, F32Tensor& tensor) {
        buffers[binding] = {tensor.values.data(), tensor.values.size() * sizeof(float)};
    }

    // The engine's own numbers.
    void run() {
        attention.kernel(FOVEA_KERNEL_PLAIN)
            .outputs(FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_LSE);
        const Result<Plan> plan = plan_cpu(attention);
        ASSERT_TRUE(plan) << plan.error().text;
        // A binding that the call does not have is refused.
        FoveaHostBuffer given[FOVEA_BIND_COUNT] = {};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
            if (plan->info().binding_mask >> i & 1) given[i] = buffers[i];
        std::vector<std::byte> workspace(plan->info().workspace_bytes + 64);
        void* aligned = workspace.data();
        size_t room = workspace.size();
        std::align(64, plan->info().workspace_bytes, aligned, room);
        FoveaCpuRun run{};
        run.struct_size = sizeof run;
        run.binding_count = FOVEA_BIND_COUNT;
        run.bindings = given;
        run.workspace = {aligned, plan->info().workspace_bytes};
        const Result<void> done = plan->run_cpu(run);
        ASSERT_TRUE(done) << done.error().text;
    }

    // Derives every cell and compares with the engine.
    void expect_agreement() {
        run();
        for (uint32_t b = 0; b < 2; ++b) {
            for (uint32_t h = 0; h < 4; ++h) {
                for (uint64_t i = 0; i < 5; ++i) {
                    for (uint64_t j = 0; j < 7; ++j) expect_cell({b, h, i, j});
                }
            }
        }
    }
    void expect_cell(const Cell& cell) {
        const Result<Derivation> derived = derive_cell(attention, buffers, cell);
        ASSERT_TRUE(derived) << derived.error().text;
        const uint64_t row = (cell.batch * 4 + cell.head) * 5 + cell.query;
        const auto where = ::testing::Message() << "batch " << cell.batch << " head " << cell.head
                                                << " query " << cell.query << " key " << cell.key;
        EXPECT_NEAR(derived->dropped_weight, weights.row(row)[cell.key], 1e-6) << where;
        const float engine_masked = masked.row(row)[cell.key];
        EXPECT_EQ(derived->masked == kHidden, engine_masked == kHidden) << where;
        EXPECT_EQ(derived->hidden_by.empty(), engine_masked != kHidden) << where;
        if (engine_masked != kHidden) {
            EXPECT_NEAR(derived->masked, engine_masked, 1e-5) << where;
        }
        if (std::isinf(lse.values[row])) {
            EXPECT_EQ(derived->lse, lse.values[row]) << where;
        } else {
            EXPECT_NEAR(derived->lse, lse.values[row], 1e-5) << where;
        }
        const float* context = context_row(cell);
        for (size_t d = 0; context && d < 3; ++d) {
            EXPECT_NEAR(derived->values[d].context, context[d], 1e-5) << where << " d " << d;
        }
    }
    // The row of o that a cell's query writes; null where it has none.
    const float* context_row(const Cell& cell) const {
        if (attention.desc.packed_rows_q == 0)
            return o.values.data() + 3 * ((cell.batch * 4 + cell.head) * 5 + cell.query);
        const FoveaSequence& entry = table[cell.batch];
        if (cell.query >= uint64_t(entry.q_length)) return nullptr;
        return o.values.data() + 3 * ((uint64_t(entry.q_start) + cell.query) * 4 + cell.head);
    }
};

TEST(DeriveCell, agrees_with_the_engine_plain) { Call(1).expect_agreement(); }

TEST(DeriveCell, agrees_with_the_engine_causal_capped_grouped) {
    Call call(2);
    call.attention.causal(Align::bottom_right).softcap(3.0f).scale(0.7f);
    call.expect_agreement();
}

TEST(DeriveCell, agrees_with_the_engine_window_alibi_bias_mask) {
    Call call(3);
    call.attention.window(2, 1);
    call.attention.desc.flags |= FOVEA_FLAG_ALIBI, call.attention.desc.align = FOVEA_ALIGN_TOP_LEFT;
    call.attention.desc.bias.present = 1;
    call.attention.desc.bias.heads = 4;
    call.attention.desc.bias.type = FOVEA_F32;
    call.attention.desc.mask.present = 1;
    call.attention.desc.mask.type = FOVEA_U8;
    call.bias.values[9] = kHidden;
    call.expect_agreement();
}

TEST(DeriveCell, agrees_with_the_engine_lengths_sinks_dropout) {
    Call call(4);
    call.attention.desc.flags |= FOVEA_FLAG_SINKS | FOVEA_FLAG_VARLEN;
    call.attention.dropout(0.4f, 77);
    call.expect_agreement();
}

TEST(DeriveCell, agrees_with_the_engine_past_the_columns_of_a_mask) {
    Call call(14);
    call.attention.desc.mask.present = 1, call.attention.desc.mask.type = FOVEA_U8;
    call.attention.desc.mask.keys = 5;
    std::fill(call.mask.begin(), call.mask.end(), uint8_t{1});
    call.expect_agreement();
    EXPECT_EQ(derive_cell(call.attention, call.buffers, {0, 0, 0, 5})->hidden_by, "mask: 0 at this cell");
}

TEST(DeriveCell, agrees_with_the_engine_packed_queries_and_keys) {
    Call call(10);
    call.attention.desc.flags |= FOVEA_FLAG_VARLEN;
    call.table = {{3, 4, 1, 5}, {0, 3, 6, 6}};
    call.buffers[FOVEA_BIND_SEQUENCES].data = call.table.data();
    call.attention.desc.packed_rows_q = 8, call.attention.desc.packed_rows_kv = 12;
    call.attention.causal(Align::bottom_right);
    call.expect_agreement();
}

TEST(DeriveCell, agrees_with_the_engine_packed_queries_alone) {
    Call call(11);
    call.attention.desc.flags |= FOVEA_FLAG_VARLEN | FOVEA_FLAG_ALIBI,
        call.attention.desc.align = FOVEA_ALIGN_TOP_LEFT;
    call.table = {{4, 5, 0, 7}, {0, 4, 0, 6}};
    call.buffers[FOVEA_BIND_SEQUENCES].data = call.table.data();
    call.attention.desc.packed_rows_q = 9;
    call.expect_agreement();
}

TEST(DeriveCell, agrees_with_the_engine_on_pages_that_lead_nowhere) {
    Call call(12);
    call.attention.desc.page_size = 3;
    call.attention.desc.page_count = 4;
    call.attention.desc.block_table_pages = 3;
    call.expect_agreement();
    const Derivation nowhere = *derive_cell(call.attention, call.buffers, {0, 1, 2, 6});
    EXPECT_EQ(nowhere.hidden_by, "block table: key 6 has no page");
    EXPECT_EQ(nowhere.visible_keys, 6u);
    EXPECT_EQ(derive_cell(call.attention, call.buffers, {1, 1, 2, 3})->hidden_by,
              "block table: key 3 has no page");
    EXPECT_EQ(derive_cell(call.attention, call.buffers, {1, 1, 2, 6})->hidden_by, "");
}

// One NaN logit makes the whole row NaN: the largest, the sum and every weight.
TEST(DeriveCell, a_key_that_is_no_number_spoils_the_row_that_sees_it) {
    Call call(13);
    call.attention.causal(Align::top_left);
    for (float& value : call.k.row(2)) value = std::numeric_limits<float>::quiet_NaN();
    for (const uint64_t key : {0u, 2u, 4u}) {
        const Derivation d = *derive_cell(call.attention, call.buffers, {0, 0, 4, key});
        EXPECT_TRUE(std::isnan(d.row_max));
        EXPECT_TRUE(std::isnan(d.denominator));
        EXPECT_TRUE(std::isnan(d.weight));
        EXPECT_TRUE(std::isnan(d.lse));
    }
    const Derivation before = *derive_cell(call.attention, call.buffers, {0, 0, 1, 0});
    EXPECT_TRUE(std::isfinite(before.weight));
}

TEST(DeriveCell, a_row_that_sees_nothing_has_no_weight) {
    Call call(5);
    call.attention.causal(Align::top_left).q_offset(-3);
    call.run();
    call.expect_cell({0, 0, 1, 0});
    const Derivation derivation = *derive_cell(call.attention, call.buffers, {0, 0, 1, 0});
    EXPECT_EQ(derivation.visible_keys, 0u);
    EXPECT_EQ(derivation.weight, 0.0f);
    EXPECT_EQ(derivation.lse, kHidden);
    EXPECT_EQ(derivation.hidden_by, "causal: key 0 comes after position -2");
}

TEST(DeriveCell, the_steps_follow_from_each_other) {
    Call call(6);
    call.attention.causal(Align::top_left);
    const Derivation d = *derive_cell(call.attention, call.buffers, {1, 3, 4, 2});
    EXPECT_EQ(d.kv_head, 1u);
    EXPECT_EQ(d.position, 4);
    EXPECT_EQ(d.visible_keys, 5u);
    ASSERT_EQ(d.terms.size(), 6u);
    float sum = 0.0f;
    for (const DerivationTerm& term : d.terms) {
        EXPECT_EQ(term.product, term.q * term.k);
        sum += term.product;
        EXPECT_EQ(term.running_sum, sum);
    }
    EXPECT_EQ(d.terms[5].q, call.q.row((1 * 4 + 3) * 5 + 4)[5]);
    EXPECT_EQ(d.terms[5].k, call.k.row((1 * 2 + 1) * 7 + 2)[5]);
    EXPECT_EQ(d.dot, sum);
    EXPECT_EQ(d.score, d.dot * d.scale);
    EXPECT_EQ(d.weight, d.exponential / d.denominator);
    EXPECT_EQ(d.values[1].contribution, d.weight * d.values[1].value);
}

TEST(DeriveCell, refuses_cells_outside_and_short_buffers) {
    Call call(7);
    EXPECT_EQ(derive_cell(call.attention, call.buffers, {0, 0, 5, 0}).error().text,
              "cell.query is 5; it must be below 5");
    EXPECT_EQ(derive_cell(call.attention, call.buffers, {2, 0, 0, 0}).error().field, "cell.batch");
    call.buffers[FOVEA_BIND_K].size_bytes -= 4;
    const Result<Derivation> refused = derive_cell(call.attention, call.buffers, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text, "binding K has 668 bytes; it needs 672");
    call.attention.dims(0);
    EXPECT_FALSE(derive_cell(call.attention, call.buffers, {}));
}

TEST(DeriveCell, a_hidden_key_may_hold_anything) {
    Call call(8);
    call.attention.causal(Align::top_left);
    for (float& value : call.k.row(6)) value = std::numeric_limits<float>::quiet_NaN();
    for (float& value : call.v.row(6)) value = std::numeric_limits<float>::infinity();
    const Derivation d = *derive_cell(call.attention, call.buffers, {0, 0, 3, 6});
    EXPECT_EQ(d.weight, 0.0f);
    EXPECT_EQ(d.values[0].contribution, 0.0f);
    EXPECT_TRUE(std::isfinite(d.values[0].context));
}

// The second token of the tutorials against the third, level 2.
Derivation tutorial_cell() {
    const Result<LessonRun> run = run_lesson(*find_lesson("t1-06"));
    const F32Tensor &q = run->find("queries")->tensor, &k = run->find("keys")->tensor,
                    &v = run->find("values")->tensor;
    Attention call;
    call.batch(1).heads(1).lengths(6, 6).dims(2).scale(static_cast<float>(1.0 / std::sqrt(2.0)));
    FoveaHostBuffer buffers[FOVEA_BIND_COUNT] = {};
    const auto bind = [&](FoveaBinding binding, const F32Tensor& tensor) {
        buffers[binding] = {const_cast<float*>(tensor.values.data()), tensor.values.size() * sizeof(float)};
    };
    bind(FOVEA_BIND_Q, q);
    bind(FOVEA_BIND_K, k);
    bind(FOVEA_BIND_V, v);
    return *derive_cell(call, buffers, {0, 0, 1, 2});
}

TEST(DerivationText, for_a_person) {
    EXPECT_EQ(derivation_text(tutorial_cell(), {.query_token = "journey", .key_token = "starts"}),
              "batch 0, head 0: query 1 'journey' against key 2 'starts'\n"
              "        d            q            k        q * k          sum\n"
              "        0       0.4306       0.4361       0.1878       0.1878\n"
              "        1       1.4551       1.1156       1.6233       1.8111\n"
              "dot             1.8111   sum of q[d] * k[d]\n"
              "score           1.2806   dot * 0.7071\n"
              "masked          1.2806   the query sees this key\n"
              "max             1.3098   of the row's 6 visible keys\n"
              "exp             0.9712   exp(1.2806 - 1.3098)\n"
              "sum             4.4173   of exp over the row\n"
              "weight          0.2199   0.9712 / 4.4173\n"
              "        d            v   weight * v      context\n"
              "        0       0.3879       0.0853       0.3061\n"
              "        1       0.9831       0.2162       0.8210\n");
}

TEST(DerivationText, of_a_long_head_shows_the_largest_products) {
    Call call(9);
    const Derivation d = *derive_cell(call.attention, call.buffers, {});
    const std::string text = derivation_text(d, {.most_terms = 2});
    EXPECT_NE(text.find("  (the 2 largest of 6 products)\n"), std::string::npos) << text;
    EXPECT_NE(text.find("  (the first 2 of 3 dimensions)\n"), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 16);
}

TEST(DerivationText, names_what_hides_a_key) {
    Call call(9);
    call.attention.causal(Align::top_left);
    const std::string text = derivation_text(*derive_cell(call.attention, call.buffers, {0, 0, 2, 4}));
    EXPECT_NE(text.find("hidden by causal: key 4 comes after position 2\n"), std::string::npos) << text;
}

TEST(DerivationText, python_csv_and_latex_carry_the_numbers) {
    const Derivation d = tutorial_cell();
    EXPECT_EQ(derivation_python(d),
              "import math\n"
              "# batch 0, head 0, query 1, key 2\n"
              "q = [0.4306369, 1.4550582]\n"
              "k = [0.43606102, 1.115641]\n"
              "score = sum(a * b for a, b in zip(q, k)) * 0.70710677\n"
              "exponential = math.exp(score - 1.3098335)  # the row's largest\n"
              "weight = exponential / 4.417278  # the row's sum\n"
              "print(weight)  # 0.21987163\n");
    EXPECT_EQ(derivation_csv(d),
              "d,q,k,product,running_sum\n"
              "0,0.4306369,0.43606102,0.18778397,0.18778397\n"
              "1,1.4550582,1.115641,1.6233226,1.8111066\n"
              "\n"
              "step,value\n"
              "dot,1.8111066\nscale,0.70710677\nscore,1.2806457\nmasked,1.2806457\nrow_max,1.3098335\n"
              "exponential,0.971234\ndenominator,4.417278\nweight,0.21987163\n"
              "\n"
              "d,v,contribution,context\n"
              "0,0.38794604,0.08529833,0.30610022\n"
              "1,0.9830959,0.21615489,0.82103026\n");
    EXPECT_EQ(derivation_latex(d),
              "\\begin{aligned}\n"
              "q \\cdot k &= 0.4306 \\cdot 0.4361 + 1.4551 \\cdot 1.1156 = 1.8111 \\\\\n"
              "s_{1,2} &= 1.8111 \\cdot 0.7071 = 1.2806 \\\\\n"
              "a_{1,2} &= \\frac{e^{1.2806 - 1.3098}}{4.4173} = 0.2199\n"
              "\\end{aligned}\n");
}

// The text names the terms that the session adds to a score, not only the result; it shows every product of a
// head of 64, and of a wider one it gives their number.
TEST(DerivationText, latex_has_every_product_and_what_changes_the_score) {
    Derivation d = tutorial_cell();
    d.softcap = 2.0f, d.capped = 1.1258f, d.has_alibi = true, d.alibi = -0.25f, d.has_bias = true,
    d.bias = 0.5f;
    d.masked = 1.3758f;
    std::string text = derivation_latex(d);
    EXPECT_NE(text.find("s'_{1,2} &= 2.0000 \\tanh(1.2806 / 2.0000) + (-0.2500) + 0.5000 = 1.3758 "),
              std::string::npos)
        << text;
    d.hidden_by = "causal: key 2 comes after position 1", d.masked = -INFINITY;
    text = derivation_latex(d);
    EXPECT_NE(text.find("s'_{1,2} &= \\text{causal: key 2 comes after position 1} = -\\infty "),
              std::string::npos)
        << text;
    const auto products = [&](size_t count) {
        d.terms.assign(count, {0.5f, 2.0f, 1.0f, 1.0f});
        text = derivation_latex(d);
        size_t found = 0;
        for (size_t at = 0; (at = text.find("0.5000 \\cdot 2.0000", at)) != std::string::npos; ++at) ++found;
        return found;
    };
    EXPECT_EQ(products(64), 64u);
    EXPECT_EQ(text.find('%'), std::string::npos) << text;
    EXPECT_EQ(text.find("\\dots"), std::string::npos) << text;
    EXPECT_EQ(products(128), 64u);
    EXPECT_TRUE(text.starts_with("% the first 64 of 128 products; the sum is of all\n")) << text;
}

TEST(HeadStats, of_known_patterns) {
    // Everything on the first token; everything on the one before; spread over all.
    const std::vector<float> first = {1, 0, 0, 1, 0, 0, 1, 0, 0};
    EXPECT_EQ(head_stats(first, 3).first_token_mass, 1.0);
    EXPECT_EQ(head_stats(first, 3).entropy, 0.0);
    EXPECT_EQ(head_stats(first, 3).mean_distance, 1.0);
    EXPECT_EQ(head_stats(first, 3).previous_token, 0.5);
    const std::vector<float> previous = {1, 0, 0, 1, 0, 0, 0, 1, 0};
    EXPECT_EQ(head_stats(previous, 3).previous_token, 1.0);
    EXPECT_NEAR(head_stats(previous, 3).mean_distance, 2.0 / 3.0, 1e-12);
    const std::vector<float> even(4, 0.5f);
    EXPECT_NEAR(head_stats(even, 2).entropy, std::log(2.0), 1e-7);
    EXPECT_NEAR(head_stats(even, 2).relative_entropy, 1.0, 1e-7);
    EXPECT_EQ(head_stats(even, 2).largest_weight, 0.5);
    // A key to the right is as far as one to the left.
    EXPECT_NEAR(head_stats(even, 2).mean_distance, 0.5, 1e-12);
}

TEST(HeadStats, rows_without_a_key_do_not_count) {
    const std::vector<float> weights = {0, 0, 1, 0};
    EXPECT_EQ(head_stats(weights, 2).rows, 1u);
    EXPECT_EQ(head_stats(weights, 2).first_token_mass, 1.0);
    EXPECT_EQ(head_stats({}, 2).rows, 0u);
    EXPECT_EQ(head_stats({}, 0).rows, 0u);
}

TEST(HeadStats, an_offset_moves_the_positions) {
    const std::vector<float> weights = {0, 0, 1, 0};  // one query at position 3
    EXPECT_EQ(head_stats(weights, 4, 3).previous_token, 1.0);
    EXPECT_EQ(head_stats(weights, 4, 3).mean_distance, 1.0);
}

}  // namespace
}  // namespace fovea
