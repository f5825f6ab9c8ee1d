// A key's values reach exactly the rows that attend to it: NaN in one key leaves every other row unchanged,
// bit for bit, and turns the rows that use it into NaN.
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"

#include <cmath>
#include <cstring>

namespace fovea::test {
namespace {

struct Planted {
    FoveaBinding tensor;
    int64_t key;
};

void plant(const Case& c, const Planted& planted, Tensors& inputs) {
    const bool is_key = planted.tensor == FOVEA_BIND_K;
    const FoveaStrides s = is_key ? k_strides(c) : v_strides(c);
    const int64_t first = key_element(c, s, 0, 0, planted.key);
    const float poison = planted.key % 2 ? NAN : INFINITY;
    for (uint32_t n = 0; n < (is_key ? c.desc.dim_qk : c.desc.dim_v); ++n)
        write_float(inputs[planted.tensor], is_key ? c.desc.k_type : c.desc.v_type, first + n, poison);
}

// Rows of entry 0 that see the key and read key/value head 0; the key's page must not serve another entry.
bool uses(const Case& c, const Planted& planted, uint32_t b, uint32_t h, int64_t i) {
    return b == 0 && h < c.desc.heads_q / c.desc.heads_kv && is_visible(c, b, h, i, planted.key);
}

void expect_contained(const Case& c, const Planted& planted, const Bytes& clean, const Bytes& got) {
    const FoveaAttentionDesc& d = c.desc;
    const size_t row_bytes = d.dim_v * (d.o_type == FOVEA_F32 ? 4 : 2);
    size_t users = 0, others = 0;
    for (uint32_t b = 0; b < d.batch; ++b) {
        for (uint32_t h = 0; h < d.heads_q; ++h) {
            for (int64_t i = 0; i < int64_t(d.len_q); ++i) {
                const int64_t first = query_element(c, o_strides(c), b, h, i);
                const size_t at = size_t(first) * (row_bytes / d.dim_v);
                if (!uses(c, planted, b, h, i)) {
                    ++others;
                    ASSERT_EQ(memcmp(got.data() + at, clean.data() + at, row_bytes), 0)
                        << "b " << b << " h " << h << " i " << i << " does not see key " << planted.key;
                    continue;
                }
                ++users;
                for (uint32_t n = 0; n < d.dim_v; ++n)
                    ASSERT_FALSE(std::isfinite(read_float(got, d.o_type, first + n)))
                        << "b " << b << " h " << h << " i " << i << " uses key " << planted.key;
            }
        }
    }
    EXPECT_GT(users, 0u);
    EXPECT_GT(others, 0u);
}

void expect_containment(const std::function<void(Case&)>& edit) {
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16, FOVEA_BF16}) {
        Case c = plain_case(41, 2, 4, 2, 66, 140, 24, 16);
        c.desc.q_type = c.desc.k_type = c.desc.v_type = c.desc.o_type = type;
        edit(c);
        settle(c);
        Result<FoveaPlanInfo> info = plan_info(c.desc);
        ASSERT_TRUE(info) << info.error().text;
        const Tensors clean = make_inputs(c, info->binding_bytes, Unused::zero);
        on_each_executor([&](Executor& executor) {
            const Outcome before = run_or_fail(executor, c.desc, clean);
            if (!before.ran()) return;
            for (const Planted& planted : {Planted{FOVEA_BIND_V, 40}, Planted{FOVEA_BIND_V, 63},
                                           Planted{FOVEA_BIND_K, 41}, Planted{FOVEA_BIND_K, 64}}) {
                Tensors inputs = clean;
                plant(c, planted, inputs);
                const Outcome after = run_or_fail(executor, c.desc, inputs);
                if (before.ran() && after.ran())
                    expect_contained(c, planted, before.outputs[FOVEA_BIND_O], after.outputs[FOVEA_BIND_O]);
            }
        });
    }
}

TEST(Poison, stays_with_the_rows_that_see_it_under_a_causal_mask) {
    expect_containment(
        [](Case& c) { c.desc.flags |= FOVEA_FLAG_CAUSAL, c.desc.align = FOVEA_ALIGN_TOP_LEFT; });
}
TEST(Poison, stays_with_the_rows_that_see_it_under_a_window) {
    expect_containment([](Case& c) {
        c.desc.flags |= FOVEA_FLAG_WINDOW, c.desc.align = FOVEA_ALIGN_TOP_LEFT;
        c.desc.window_left = 9;
        c.desc.window_right = 5;
    });
}
TEST(Poison, stays_with_the_rows_that_see_it_under_a_boolean_mask) {
    expect_containment([](Case& c) { c.desc.mask = {1, FOVEA_U8, c.desc.batch, c.desc.heads_q, 0, 0, {}}; });
}
TEST(Poison, stays_with_the_rows_that_see_it_under_a_bias) {
    expect_containment([](Case& c) {
        c.desc.bias = {1, FOVEA_F32, c.desc.batch, c.desc.heads_q, 0, 0, {}};
        c.bias_pattern = BiasPattern::single_infinity;
    });
}
TEST(Poison, stays_with_its_entry_and_head) {
    expect_containment([](Case& c) {
        c.desc.flags |= FOVEA_FLAG_VARLEN | FOVEA_FLAG_SINKS;
        c.table = {{0, 66, 0, 100}, {0, 50, 0, 140}};
    });
}
TEST(Poison, in_one_query_stays_in_its_row) {
    Case c = plain_case(42, 1, 2, 1, 70, 90, 24, 16);
    settle(c);
    Result<FoveaPlanInfo> info = plan_info(c.desc);
    ASSERT_TRUE(info) << info.error().text;
    const Tensors clean = make_inputs(c, info->binding_bytes, Unused::zero);
    Tensors inputs = clean;
    write_float(inputs[FOVEA_BIND_Q], FOVEA_F32, query_element(c, q_strides(c), 0, 1, 33) + 3, NAN);
    on_each_executor([&](Executor& executor) {
        const Outcome before = run_or_fail(executor, c.desc, clean),
                      after = run_or_fail(executor, c.desc, inputs);
        if (!before.ran() || !after.ran()) return;
        for (uint32_t h = 0; h < 2; ++h) {
            for (int64_t i = 0; i < 70; ++i) {
                const size_t at = size_t(query_element(c, o_strides(c), 0, h, i)) * 4;
                const bool same = memcmp(before.outputs[FOVEA_BIND_O].data() + at,
                                         after.outputs[FOVEA_BIND_O].data() + at, 16 * 4) == 0;
                EXPECT_EQ(same, !(h == 1 && i == 33)) << "h " << h << " i " << i;
            }
        }
    });
}

// ---- poison in slots that nothing may read ----

// Bytes of the bindings that differ between the inputs with zeros and with NaN and infinity in unused slots.
size_t poisoned_bytes(const PreparedCase& prepared, FoveaBinding binding) {
    const Bytes &a = prepared.clean[binding], &b = prepared.poisoned[binding];
    size_t count = 0;
    for (size_t n = 0; n < a.size(); ++n) count += a[n] != b[n];
    return count;
}

void expect_no_bit_changes(std::initializer_list<FoveaBinding> poisoned,
                           const std::function<void(Case&)>& edit) {
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16, FOVEA_BF16}) {
        Case c = plain_case(43, 2, 4, 2, 33, 150, 24, 16);
        c.desc.q_type = c.desc.k_type = c.desc.v_type = c.desc.o_type = type;
        c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_ROW_STATS;
        edit(c);
        settle(c);
        Result<PreparedCase> prepared = prepare(c);
        ASSERT_TRUE(prepared) << prepared.error().text;
        for (const FoveaBinding binding : poisoned)
            EXPECT_GT(poisoned_bytes(*prepared, binding), 0u)
                << "binding " << binding << " has no unused slot";
        for (const uint32_t outputs : {c.desc.outputs, uint32_t(FOVEA_OUTPUT_O)}) {
            FoveaAttentionDesc desc = c.desc;
            desc.outputs = outputs;
            on_each_executor([&](Executor& executor) {
                const Outcome clean = run_or_fail(executor, desc, prepared->clean),
                              poisoned_run = run_or_fail(executor, desc, prepared->poisoned);
                if (!clean.ran() || !poisoned_run.ran()) return;
                EXPECT_EQ(first_difference(clean.outputs, poisoned_run.outputs), "");
            });
        }
    }
}

TEST(Poison, behind_the_lengths_changes_no_bit) {
    expect_no_bit_changes({FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V}, [](Case& c) {
        c.desc.flags |= FOVEA_FLAG_VARLEN;
        c.table = {{0, 30, 0, 77}, {0, 33, 0, 128}};
    });
}
TEST(Poison, of_keys_that_every_query_has_masked_changes_no_bit) {
    expect_no_bit_changes({FOVEA_BIND_K, FOVEA_BIND_V}, [](Case& c) {
        c.desc.flags |= FOVEA_FLAG_CAUSAL;
        c.desc.align = FOVEA_ALIGN_OFFSET;
        c.desc.q_offset = 40;
    });
}
TEST(Poison, between_rows_and_heads_changes_no_bit) {
    expect_no_bit_changes({FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V}, [](Case& c) {
        c.desc.q_strides = {33 * 4 * 29 + 5, 29, 4 * 29};
        c.desc.k_strides = {2 * (150 * 27 + 3), 150 * 27 + 3, 27};
        c.desc.v_strides = {150 * 2 * 19, 19, 2 * 19};
    });
}
TEST(Poison, of_mask_padding_and_of_what_a_mask_hides_changes_no_bit) {
    expect_no_bit_changes({FOVEA_BIND_MASK, FOVEA_BIND_BIAS, FOVEA_BIND_DROPOUT_MASK, FOVEA_BIND_K},
                          [](Case& c) {
                              c.desc.mask = {1, FOVEA_U8, 2, 4, 33, 141, {4 * 33 * 147 + 1, 33 * 147, 147}};
                              c.desc.bias = {1, FOVEA_F16, 1, 4, 33, 139, {0, 33 * 144, 144}};
                              c.desc.dropout_mask = {1, FOVEA_U8, 2, 1, 33, 145, {33 * 149, 0, 149}};
                          });
}
TEST(Poison, of_unused_pages_and_rows_of_pages_changes_no_bit) {
    expect_no_bit_changes({FOVEA_BIND_K, FOVEA_BIND_V}, [](Case& c) {
        c.desc.flags |= FOVEA_FLAG_VARLEN;
        c.table = {{0, 33, 0, 77}, {0, 33, 0, 131}};
        c.desc.page_size = 16, c.desc.page_count = 24, c.desc.block_table_pages = 10;
        for (int32_t n = 0; n < 20; ++n) c.block_table.push_back(n % 7 == 3 ? -1 : (5 * n + 2) % 24);
    });
}

}  // namespace
}  // namespace fovea::test
