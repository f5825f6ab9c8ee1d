// Long keys that are cut into splits: each feature meets a merge of one, two and nine partial results, in the
// decode and the one-pass kernels. The sweep's keys are too few to be split on the CPU.
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

namespace fovea::test {
namespace {

// With the call's heads a split of the CPU's decode kernel holds 512 keys; FOVEA_FLAG_FIXED_SPLITS, which
// other kernels obey, makes splits of about a thousand.
struct Keys {
    const char* name;
    uint64_t count;
};
constexpr Keys kKeys[] = {{"one split", 500}, {"two splits", 1000}, {"nine splits", 4500}};

FoveaMatrixDesc matrix(FoveaDtype type, uint32_t heads) {
    FoveaMatrixDesc m{};
    m.present = 1, m.type = type, m.heads = heads;
    return m;
}

void mask(Case& c) { c.desc.mask = matrix(FOVEA_U8, c.desc.heads_q); }
void dropout(Case& c) {
    c.desc.dropout_p = 0.25f;
    c.desc.dropout_seed = 0x0123456789abcdefull, c.desc.dropout_offset = 0x1122334455667788ull;
}
void window(Case& c) {
    c.desc.flags |= FOVEA_FLAG_WINDOW;
    c.desc.align = FOVEA_ALIGN_BOTTOM_RIGHT;
    c.desc.window_left = int64_t(c.desc.len_kv * 2 / 3), c.desc.window_right = 0;
}
// Pages of sixteen keys in a random order, one of them outside the pool.
void pages(Case& c) {
    FoveaAttentionDesc& d = c.desc;
    d.page_size = 16;
    d.block_table_pages = (d.len_kv + 15) / 16;
    d.page_count = uint32_t(d.block_table_pages) + 3;
    for (uint64_t n = 0; n < d.batch * d.block_table_pages; ++n)
        c.block_table.push_back(int32_t((n * 7 + 1) % d.page_count));
    c.block_table[c.block_table.size() / 2] = int32_t(d.page_count);
}
// Entries end to end. The second one has fewer queries than the call: rows past its length are nobody's.
void packed(Case& c) {
    FoveaAttentionDesc& d = c.desc;
    d.flags |= FOVEA_FLAG_VARLEN;
    const auto rows = int32_t(d.len_q), keys = int32_t(d.len_kv);
    c.table = {{0, rows, 3, keys - 100}, {rows, rows - 1, keys, keys}, {2 * rows, rows, 2 * keys, 9}};
    d.packed_rows_q = uint64_t(3 * rows) + 1, d.packed_rows_kv = uint64_t(2 * keys) + 12;
}

// Rows of two blocks and of three, so that a tile of columns ends with one.
void blocks(Case& c) {
    c.desc.k_type = FOVEA_Q8_0, c.desc.v_type = FOVEA_Q4_0;
    c.desc.dim_qk = 64, c.desc.dim_v = 96;
}

struct Variant {
    const char* name;
    void (*edit)(Case& c);
};
const Variant kVariants[] = {
    {"plain", [](Case&) {}},
    {"ALiBi", [](Case& c) { c.desc.flags |= FOVEA_FLAG_ALIBI, c.desc.align = FOVEA_ALIGN_TOP_LEFT; }},
    {"a bias of float32", [](Case& c) { c.desc.bias = matrix(FOVEA_F32, c.desc.heads_q); }},
    {"a bias of float16", [](Case& c) { c.desc.bias = matrix(FOVEA_F16, c.desc.heads_q); }},
    {"softcap", [](Case& c) { c.desc.softcap = 2.5f; }},
    {"sinks", [](Case& c) { c.desc.flags |= FOVEA_FLAG_SINKS; }},
    {"a mask", mask},
    {"dropout", dropout},
    {"a dropout mask",
     [](Case& c) { c.desc.dropout_mask = matrix(FOVEA_U8, c.desc.heads_q), c.desc.dropout_p = 0.25f; }},
    {"pages", pages},
    {"packed entries", packed},
    {"causal", [](Case& c) { c.desc.flags |= FOVEA_FLAG_CAUSAL, c.desc.align = FOVEA_ALIGN_BOTTOM_RIGHT; }},
    {"a window", window},
    {"keys and values of float16", [](Case& c) { c.desc.k_type = c.desc.v_type = FOVEA_F16; }},
    {"keys and values in 8-bit floats",
     [](Case& c) { c.desc.k_type = FOVEA_F8_E4M3, c.desc.v_type = FOVEA_F8_E5M2; }},
    {"keys and values in blocks", blocks},
    {"values and keys in blocks", [](Case& c) { blocks(c), std::swap(c.desc.k_type, c.desc.v_type); }},
    {"ALiBi, softcap, sinks, a mask and dropout on pages",
     [](Case& c) {
         c.desc.flags |= FOVEA_FLAG_ALIBI | FOVEA_FLAG_SINKS, c.desc.align = FOVEA_ALIGN_TOP_LEFT;
         c.desc.softcap = 4;
         mask(c), dropout(c), pages(c);
     }},
};

// Kernels that split keys, by name: the CPU's on the instruction set of the executor under test.
std::vector<std::string> splitting_kernels(const std::string& name) {
    if (name.rfind("cpu@", 0) == 0) return {"cpu:decode" + name.substr(3), "cpu:flash" + name.substr(3)};
    if (name.rfind("vulkan", 0) == 0) {
        const size_t rest = std::min(name.size(), name.find('@'));
        return {"vulkan:flash" + name.substr(rest)};
    }
    return {};
}

Case long_case(uint64_t seed, uint64_t keys, const Variant& variant) {
    // A merge of vectors of rows and of single columns: six rows of a group, twenty-one columns.
    Case c = plain_case(seed, 3, 4, 2, 3, keys, 36, 21);
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    c.desc.flags = FOVEA_FLAG_FIXED_SPLITS;
    c.values = seed % 2 ? Values::peaked : Values::normal;
    variant.edit(c);
    // Slices in a random order show rows that one slice writes for another; slices of four heads each,
    // accesses past the last of six.
    const double head = 2.0 * (36 + 21) * 6 * double(keys);
    if (c.desc.flags & FOVEA_FLAG_VARLEN)
        c.desc.max_slice_cost = head / 4;
    else if (seed % 3 == 1)
        c.desc.max_slice_cost = 4.5 * head;
    settle(c);
    return c;
}

TEST(Splits, of_one_two_and_nine_give_the_references_rows_with_every_feature) {
    std::map<std::string, std::unique_ptr<Executor>> executors;
    on_each_executor([&](Executor& executor) {
        for (const std::string& name : splitting_kernels(executor.name())) {
            std::string error;
            executors[name] = make_executor(name, error);
            ASSERT_TRUE(executors[name]) << error;
        }
    });
    uint64_t seed = 900;
    for (const Keys& keys : kKeys) {
        for (const Variant& variant : kVariants) {
            SCOPED_TRACE(std::string(variant.name) + ", " + keys.name);
            const Result<PreparedCase> prepared = prepare(long_case(++seed, keys.count, variant));
            ASSERT_TRUE(prepared) << prepared.error().text;
            for (const auto& [name, executor] : executors) {
                // Some of the forms on Vulkan read such rows: the sweep has them.
                if (name.rfind("vulkan", 0) == 0 && prepared->c.desc.k_type > FOVEA_BF16) continue;
                const CaseReport report = run_case(*executor, *prepared);
                if (report.kind == CaseReport::Kind::refused && is_lack_of_float16(report.code, report.text))
                    continue;
                EXPECT_EQ(report.kind, CaseReport::Kind::passed) << name << ": " << report.text;
            }
        }
    }
    printf("%zu kernels, %zu features, %zu lengths\n", executors.size(), std::size(kVariants),
           std::size(kKeys));
}

// As many rows of a group as the kernel takes by name: its scratch holds one panel of them and not one more.
TEST(Splits, decode_runs_at_the_most_rows_that_it_takes) {
    on_each_executor([&](Executor& executor) {
        if (executor.name().rfind("cpu@", 0) != 0) return;
        const std::string name = "cpu:decode" + executor.name().substr(3);
        std::string error;
        const std::unique_ptr<Executor> decode = make_executor(name, error);
        ASSERT_TRUE(decode) << error;
        uint32_t ran = 0;
        for (uint32_t heads = 1; heads < 1000; ++heads) {
            Case c = plain_case(77, 1, heads, 1, 1, 40, 20, 21);
            c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
            settle(c);
            const Result<PreparedCase> prepared = prepare(c);
            ASSERT_TRUE(prepared) << prepared.error().text;
            const CaseReport report = run_case(*decode, *prepared);
            if (report.kind == CaseReport::Kind::refused) break;
            ASSERT_EQ(report.kind, CaseReport::Kind::passed) << heads << " rows: " << report.text;
            ran = heads;
        }
        EXPECT_GE(ran, 8u);
        EXPECT_LT(ran, 999u);
    });
}

}  // namespace
}  // namespace fovea::test
