// Every way in which a description can be wrong: the code, the field that the message names, and that nothing
// came of the call.
#include "support/cpu_device.hpp"

#include <fovea/fovea.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

namespace {

using fovea::test::cpu_device;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint64_t k2_27 = uint64_t{1} << 27, k2_30 = uint64_t{1} << 30, k2_31 = uint64_t{1} << 31,
                   k2_32 = uint64_t{1} << 32;

FoveaAttentionDesc good() {
    FoveaAttentionDesc d = foveaAttentionDesc();
    d.batch = 2;
    d.heads_q = 4, d.heads_kv = 2;
    d.len_q = 8, d.len_kv = 16;
    d.dim_qk = 32, d.dim_v = 24;
    return d;
}
void window(FoveaAttentionDesc& d) { d.flags = FOVEA_FLAG_WINDOW, d.align = FOVEA_ALIGN_TOP_LEFT; }

struct BadAttention {
    const char* what;
    std::function<void(FoveaAttentionDesc&)> edit;
    FoveaResult code;
    const char* field;
};
using D = FoveaAttentionDesc;
constexpr FoveaResult kInvalid = FOVEA_INVALID_ARGUMENT, kOverflow = FOVEA_SIZE_OVERFLOW,
                      kLimit = FOVEA_LIMIT_EXCEEDED;

FoveaMatrixDesc matrix(FoveaDtype type) {
    FoveaMatrixDesc m{};
    m.present = 1;
    m.type = type;
    return m;
}

void pages(D& d) { d.page_size = 4, d.page_count = 9, d.block_table_pages = 4; }

const BadAttention kShapes[] = {
    {"struct_size not set", [](D& d) { d.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
    {"struct_size of half a field", [](D& d) { d.struct_size = 2; }, FOVEA_ABI_MISMATCH, "struct_size"},
    {"no batch", [](D& d) { d.batch = 0; }, kInvalid, "batch"},
    {"no query heads", [](D& d) { d.heads_q = 0; }, kInvalid, "heads_q"},
    {"no key heads", [](D& d) { d.heads_kv = 0; }, kInvalid, "heads_kv"},
    {"heads that do not divide", [](D& d) { d.heads_kv = 3; }, kInvalid, "heads_q"},
    {"more key heads than query heads", [](D& d) { d.heads_kv = 8; }, kInvalid, "heads_q"},
    {"no head size", [](D& d) { d.dim_qk = 0; }, kInvalid, "dim_qk"},
    {"no value size", [](D& d) { d.dim_v = 0; }, kInvalid, "dim_v"},
    {"head size past the limit", [](D& d) { d.dim_qk = 65537; }, kLimit, "dim_qk"},
    {"value size past the limit", [](D& d) { d.dim_v = uint32_t(k2_31); }, kLimit, "dim_v"},
    {"queries past 2^30", [](D& d) { d.len_q = k2_30 + 1; }, kOverflow, "len_q"},
    {"keys past 2^30", [](D& d) { d.len_kv = k2_30 + 1; }, kOverflow, "len_kv"},
    {"keys of 2^32, zero in 32 bits", [](D& d) { d.len_kv = k2_32; }, kOverflow, "len_kv"},
    {"keys of 2^64 - 1", [](D& d) { d.len_kv = UINT64_MAX; }, kOverflow, "len_kv"},
    {"batch * heads past 2^30", [](D& d) { d.batch = uint32_t(k2_31); }, kOverflow, "batch"},
    {"k of more than 2^62 bytes",
     [](D& d) { d.len_kv = k2_30, d.dim_qk = 65536, d.batch = uint32_t(k2_27), d.heads_q = d.heads_kv = 8; },
     kOverflow, "k_strides"},
    {"matrices of more than 2^64 bytes",
     [](D& d) { d.len_q = d.len_kv = k2_30, d.batch = 8, d.outputs = FOVEA_OUTPUT_WEIGHTS; }, kOverflow,
     "outputs"},
    {"q of bytes", [](D& d) { d.q_type = FOVEA_U8; }, kInvalid, "q_type"},
    {"k of integers", [](D& d) { d.k_type = FOVEA_I32; }, kInvalid, "k_type"},
    {"v of an unknown type", [](D& d) { d.v_type = FoveaDtype(9); }, kInvalid, "v_type"},
    {"o of a negative type", [](D& d) { d.o_type = FoveaDtype(-1); }, kInvalid, "o_type"},
};

const BadAttention kNumbers[] = {
    {"scale NaN", [](D& d) { d.scale = kNan; }, kInvalid, "scale"},
    {"scale infinite", [](D& d) { d.scale = -kInf; }, kInvalid, "scale"},
    {"softcap negative", [](D& d) { d.softcap = -1; }, kInvalid, "softcap"},
    {"softcap NaN", [](D& d) { d.softcap = kNan; }, kInvalid, "softcap"},
    {"softcap infinite", [](D& d) { d.softcap = kInf; }, kInvalid, "softcap"},
    {"dropout of everything", [](D& d) { d.dropout_p = 1; }, kInvalid, "dropout_p"},
    {"dropout of more", [](D& d) { d.dropout_p = 1.5f; }, kInvalid, "dropout_p"},
    {"dropout negative", [](D& d) { d.dropout_p = -0.1f; }, kInvalid, "dropout_p"},
    {"dropout NaN", [](D& d) { d.dropout_p = kNan; }, kInvalid, "dropout_p"},
    {"counters from a query without dropout", [](D& d) { d.first_query = 1; }, kInvalid, "first_query"},
    {"counters from a head beside a dropout mask",
     [](D& d) {
         d.dropout_p = 0.5f, d.dropout_mask.present = 1, d.dropout_mask.type = FOVEA_U8,
         d.first_batch_head = 1;
     },
     kInvalid, "first_batch_head"},
    {"counters from within four keys", [](D& d) { d.dropout_p = 0.5f, d.first_key = 6; }, kInvalid,
     "first_key"},
    {"counters past 2^30", [](D& d) { d.dropout_p = 0.5f, d.first_key = k2_30; }, kOverflow, "first_key"},
    {"counters of 2^64 - 1", [](D& d) { d.dropout_p = 0.5f, d.first_query = UINT64_MAX; }, kOverflow,
     "first_query"},
    // Exponents of 2 are scale * log2(e) times a product: 3e38 made NaN of a query of zeros.
    {"scale that overflows as a power of 2", [](D& d) { d.scale = 3e38f; }, FOVEA_LIMIT_EXCEEDED, "scale"},
    {"the same below 0", [](D& d) { d.scale = -3e38f; }, FOVEA_LIMIT_EXCEEDED, "scale"},
    {"softcap that a device may take for 0", [](D& d) { d.softcap = 1e-40f; }, kInvalid, "softcap"},
    {"slices of negative cost", [](D& d) { d.max_slice_cost = -1; }, kInvalid, "max_slice_cost"},
    {"slices of NaN", [](D& d) { d.max_slice_cost = kNan; }, kInvalid, "max_slice_cost"},
    {"slices of infinite cost", [](D& d) { d.max_slice_cost = HUGE_VAL; }, kInvalid, "max_slice_cost"},
    {"unknown flag", [](D& d) { d.flags = 1u << 31; }, kInvalid, "flags"},
    {"unknown output", [](D& d) { d.outputs = 1u << 7; }, kInvalid, "outputs"},
    {"unknown alignment", [](D& d) { d.align = FoveaAlign(4); }, kInvalid, "align"},
    {"negative alignment", [](D& d) { d.align = FoveaAlign(-1); }, kInvalid, "align"},
    {"unknown precision", [](D& d) { d.precision = FoveaPrecision(4); }, kInvalid, "precision"},
    {"linear's precision", [](D& d) { d.precision = FOVEA_PRECISION_INT8_INPUTS; }, kInvalid, "precision"},
    {"unknown kernel", [](D& d) { d.kernel = FoveaKernel(FOVEA_KERNEL_COUNT); }, kInvalid, "kernel"},
    {"negative kernel", [](D& d) { d.kernel = FoveaKernel(-1); }, kInvalid, "kernel"},
    {"reserved0", [](D& d) { d.reserved0 = 1; }, kInvalid, "reserved0"},
    {"reserved1", [](D& d) { d.reserved1 = 1; }, kInvalid, "reserved1"},
    // Alignment must be stated where it matters (good() has 8 queries and 16 keys).
    {"causal without its alignment", [](D& d) { d.flags = FOVEA_FLAG_CAUSAL; }, kInvalid, "align"},
    {"causal with one query", [](D& d) { d.flags = FOVEA_FLAG_CAUSAL, d.len_q = 1; }, kInvalid, "align"},
    {"causal with more queries than keys", [](D& d) { d.flags = FOVEA_FLAG_CAUSAL, d.len_q = 17; }, kInvalid,
     "align"},
    {"window without its alignment", [](D& d) { d.flags = FOVEA_FLAG_WINDOW; }, kInvalid, "align"},
    {"ALiBi without its alignment", [](D& d) { d.flags = FOVEA_FLAG_ALIBI; }, kInvalid, "align"},
    {"causal with a table and no alignment", [](D& d) { d.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_VARLEN; },
     kInvalid, "align"},
    {"causal with a table of as many queries as keys",
     [](D& d) { d.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_VARLEN, d.len_q = d.len_kv; }, kInvalid, "align"},
    {"offset without its alignment", [](D& d) { d.q_offset = 4; }, kInvalid, "q_offset"},
    {"offset past 2^30", [](D& d) { d.align = FOVEA_ALIGN_OFFSET, d.q_offset = int64_t(k2_31); }, kOverflow,
     "q_offset"},
    {"offset below -2^30", [](D& d) { d.align = FOVEA_ALIGN_OFFSET, d.q_offset = INT64_MIN; }, kOverflow,
     "q_offset"},
    {"window without its flag", [](D& d) { d.window_left = 4; }, kInvalid, "window_left"},
    {"right window without the flag", [](D& d) { d.window_right = 4; }, kInvalid, "window_right"},
    {"window of -2 to the left", [](D& d) { window(d), d.window_left = -2; }, kInvalid, "window_left"},
    {"window of -9 to the right", [](D& d) { window(d), d.window_right = -9; }, kInvalid, "window_right"},
};

const BadAttention kStrides[] = {
    {"q running backwards",
     [](D& d) {
         d.q_strides = {1024, 256, -32};
     },
     kInvalid, "q_strides.row"},
    {"k running backwards",
     [](D& d) {
         d.k_strides = {-1024, 512, 32};
     },
     kInvalid, "k_strides.batch"},
    {"v running backwards",
     [](D& d) {
         d.v_strides = {1024, -512, 32};
     },
     kInvalid, "v_strides.head"},
    {"o running backwards",
     [](D& d) {
         d.o_strides = {1024, 256, -32};
     },
     kInvalid, "o_strides.row"},
    {"q told by the distance of its rows alone",
     [](D& d) {
         d.q_strides = {0, 0, 32};
     },
     kInvalid, "q_strides.batch"},
    {"heads of k in one place without a word",
     [](D& d) {
         d.k_strides = {16 * 32, 0, 32};
     },
     kInvalid, "k_strides.head"},
    {"entries of v in one place without a word",
     [](D& d) {
         d.v_strides = {0, 16 * 24, 24};
     },
     kInvalid, "v_strides.batch"},
    {"rows of k in one place without a word",
     [](D& d) {
         d.k_strides = {64, 32, 0};
     },
     kInvalid, "k_strides.row"},
    {"packed rows told by the distance of rows alone",
     [](D& d) {
         d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_kv = 12, d.k_strides = {0, 0, 64};
     },
     kInvalid, "k_strides.head"},
    {"pages of a pool in one place",
     [](D& d) {
         pages(d), d.k_strides = {0, 128, 32};
     },
     kInvalid, "k_strides.batch"},
    {"heads of o as one",
     [](D& d) {
         d.o_strides = {192, FOVEA_BROADCAST, 24};
     },
     kInvalid, "o_strides"},
    {"rows of o overlapping by one element",
     [](D& d) {
         d.o_strides = {4 * 8 * 24, 8 * 24, 23};
     },
     kInvalid, "o_strides"},
    {"heads of o in one place",
     [](D& d) {
         d.o_strides = {192, 0, 24};
     },
     kInvalid, "o_strides.head"},
    {"entries of o in one place",
     [](D& d) {
         d.o_strides = {0, 192, 24};
     },
     kInvalid, "o_strides.batch"},
    {"heads of o within the rows of others",
     [](D& d) {
         d.o_strides = {4 * 8 * 24, 24, 48};
     },
     kInvalid, "o_strides"},
    {"entries of o within the heads of another",
     [](D& d) {
         d.o_strides = {2 * 8 * 24, 8 * 24, 24};
     },
     kInvalid, "o_strides"},
    {"entries of o that begin one element early",
     [](D& d) {
         d.o_strides = {4 * 8 * 24 - 1, 8 * 24, 24};
     },
     kInvalid, "o_strides"},
    {"entries of o between the rows of heads, one element too near",
     [](D& d) {
         d.o_strides = {4 * 24 - 1, 24, 2 * 4 * 24};
     },
     kInvalid, "o_strides"},
    {"a stride that runs out of 64 bits",
     [](D& d) {
         d.q_strides = {INT64_MAX, 256, 32};
     },
     kOverflow, "q_strides"},
    {"a span past 2^62 bytes",
     [](D& d) {
         d.v_strides = {int64_t{1} << 61, 512, 32};
     },
     kOverflow, "v_strides"},
};

const BadAttention kMatrices[] = {
    {"mask of floats", [](D& d) { d.mask = matrix(FOVEA_F32); }, kInvalid, "mask.type"},
    {"bias of bytes", [](D& d) { d.bias = matrix(FOVEA_U8); }, kInvalid, "bias.type"},
    {"keep of integers", [](D& d) { d.dropout_mask = matrix(FOVEA_I32); }, kInvalid, "dropout_mask.type"},
    {"mask of three entries for two", [](D& d) { d.mask = matrix(FOVEA_U8), d.mask.batch = 3; }, kInvalid,
     "mask.batch"},
    {"mask over key heads", [](D& d) { d.mask = matrix(FOVEA_U8), d.mask.heads = 2; }, kInvalid,
     "mask.heads"},
    {"mask of too few rows", [](D& d) { d.mask = matrix(FOVEA_U8), d.mask.rows = 7; }, kInvalid, "mask.rows"},
    {"mask of too many keys", [](D& d) { d.mask = matrix(FOVEA_U8), d.mask.keys = 17; }, kInvalid,
     "mask.keys"},
    {"bias of too many rows", [](D& d) { d.bias = matrix(FOVEA_F16), d.bias.rows = 9; }, kInvalid,
     "bias.rows"},
    {"bias of 2^40 keys", [](D& d) { d.bias = matrix(FOVEA_F32), d.bias.keys = uint64_t{1} << 40; }, kInvalid,
     "bias.keys"},
    {"keep of five heads", [](D& d) { d.dropout_mask = matrix(FOVEA_U8), d.dropout_mask.heads = 5; },
     kInvalid, "dropout_mask.heads"},
    {"mask running backwards",
     [](D& d) {
         d.mask = matrix(FOVEA_U8), d.mask.strides = {0, 0, -16};
     },
     kInvalid, "mask.strides.row"},
    {"heads of a mask in one place without a word",
     [](D& d) {
         d.mask = matrix(FOVEA_U8), d.mask.heads = 4, d.mask.strides = {0, 0, 16};
     },
     kInvalid, "mask.strides.head"},
    {"mask twice", [](D& d) { d.mask = matrix(FOVEA_U8), d.mask.present = 2; }, kInvalid, "mask.present"},
    {"a mask of bytes that is not there", [](D& d) { d.mask.type = FOVEA_U8; }, kInvalid, "mask.present"},
    {"a bias of heads that is not there", [](D& d) { d.bias.heads = 4; }, kInvalid, "bias.present"},
    {"a bias of entries that is not there", [](D& d) { d.bias.batch = 2; }, kInvalid, "bias.present"},
    {"a keep of rows that is not there", [](D& d) { d.dropout_mask.rows = 8; }, kInvalid,
     "dropout_mask.present"},
    {"a keep of keys that is not there", [](D& d) { d.dropout_mask.keys = 16; }, kInvalid,
     "dropout_mask.present"},
    {"a mask with strides that is not there", [](D& d) { d.mask.strides.row = 16; }, kInvalid,
     "mask.present"},
    {"bias past 64 bits",
     [](D& d) {
         d.bias = matrix(FOVEA_F32), d.bias.batch = 2, d.bias.strides = {INT64_MAX, 0, 16};
     },
     kOverflow, "bias.strides"},
};

const BadAttention kStorage[] = {
    {"packed queries without a table", [](D& d) { d.packed_rows_q = 12; }, kInvalid, "packed_rows_q"},
    {"packed keys without a table", [](D& d) { d.packed_rows_kv = 12; }, kInvalid, "packed_rows_kv"},
    {"packed queries with a batch stride",
     [](D& d) {
         d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_q = 12, d.q_strides = {9, 32, 128};
     },
     kInvalid, "q_strides.batch"},
    {"packed results with a batch stride",
     [](D& d) {
         d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_q = 12, d.o_strides = {9, 24, 96};
     },
     kInvalid, "o_strides.batch"},
    {"packed keys with a batch stride",
     [](D& d) {
         d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_kv = 12, d.k_strides = {9, 32, 64};
     },
     kInvalid, "k_strides.batch"},
    {"packed values with a batch stride",
     [](D& d) {
         d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_kv = 12, d.v_strides = {9, 24, 48};
     },
     kInvalid, "v_strides.batch"},
    {"packed rows past 2^30", [](D& d) { d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_kv = k2_32; }, kOverflow,
     "packed_rows_kv"},
    {"pages of no size", [](D& d) { d.page_count = 9; }, kInvalid, "page_size"},
    {"a block table without pages", [](D& d) { d.block_table_pages = 9; }, kInvalid, "page_size"},
    {"pages of 2^31 rows", [](D& d) { pages(d), d.page_size = uint32_t(k2_31); }, kOverflow, "page_size"},
    {"a pool without pages", [](D& d) { pages(d), d.page_count = 0; }, kInvalid, "page_count"},
    {"a block table that is too short", [](D& d) { pages(d), d.block_table_pages = 3; }, kInvalid,
     "block_table_pages"},
    {"a block table of 2^40 pages", [](D& d) { pages(d), d.block_table_pages = uint64_t{1} << 40; }, kInvalid,
     "block_table_pages"},
    {"keys packed and paged", [](D& d) { pages(d), d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_kv = 12; },
     kInvalid, "packed_rows_kv"},
};

const BadAttention kBackend[] = {
    {"a kernel of another backend", [](D& d) { d.kernel = FOVEA_KERNEL_FLASH_COOPMAT2; }, FOVEA_UNSUPPORTED,
     "kernel"},
    {"a workspace that is too small", [](D& d) { d.kernel = FOVEA_KERNEL_REFERENCE, d.workspace_limit = 64; },
     kLimit, "workspace_limit"},
};

void expect_diag(const FoveaDiag& diag, FoveaResult code, const char* field) {
    EXPECT_EQ(diag.code, code);
    EXPECT_STREQ(diag.field, field);
    // One line for a person that names the field and says something.
    EXPECT_NE(strstr(diag.text, std::string(field).substr(0, std::string(field).find('.')).c_str()), nullptr)
        << diag.text;
    EXPECT_GT(strlen(diag.text), strlen(field) + 8) << diag.text;
}

template <size_t N>
void expect_refusals(const BadAttention (&table)[N], bool known_without_device) {
    const FoveaDeviceProperties properties = cpu_device(2);
    for (const BadAttention& bad : table) {
        SCOPED_TRACE(bad.what);
        FoveaAttentionDesc desc = good();
        bad.edit(desc);
        for (const FoveaDeviceProperties* device :
             {&properties, static_cast<const FoveaDeviceProperties*>(nullptr)}) {
            if (!device && !known_without_device) continue;
            fovea::Diag diag;
            EXPECT_EQ(foveaCheckAttention(device, &desc, &diag), bad.code);
            expect_diag(diag, bad.code, bad.field);
        }
        fovea::Diag diag;
        auto plan = reinterpret_cast<FoveaPlan>(uintptr_t{64});
        EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &plan, &diag), bad.code);
        expect_diag(diag, bad.code, bad.field);
        EXPECT_EQ(plan, nullptr);
        EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &plan, nullptr),
                  bad.code);  // a diag is optional
    }
}

TEST(Refusal, the_good_description_is_good) {
    const FoveaDeviceProperties properties = cpu_device(2);
    const FoveaAttentionDesc desc = good();
    fovea::Diag diag;
    EXPECT_EQ(foveaCheckAttention(&properties, &desc, &diag), FOVEA_OK) << diag.text;
}
TEST(Refusal, shapes_and_types) { expect_refusals(kShapes, true); }
TEST(Refusal, numbers_and_choices) { expect_refusals(kNumbers, true); }
TEST(Refusal, strides) { expect_refusals(kStrides, true); }
TEST(Refusal, masks_biases_and_keeps) { expect_refusals(kMatrices, true); }
TEST(Refusal, packing_and_paging) { expect_refusals(kStorage, true); }
TEST(Refusal, what_only_a_device_can_tell) { expect_refusals(kBackend, false); }

// A stride of 0 is rejected only where it would make several rows one; FOVEA_BROADCAST says that they are.
TEST(Refusal, strides_that_do_not_count_may_be_zero_and_a_broadcast_is_said_by_name) {
    const auto k_bytes = [](FoveaStrides k, const std::function<void(D&)>& edit) {
        FoveaAttentionDesc d = good();
        edit(d);
        d.k_strides = k;
        const FoveaDeviceProperties properties = cpu_device(2);
        FoveaPlan handle = nullptr;
        fovea::Diag diag;
        EXPECT_EQ(foveaPlanAttention(&properties, &d, nullptr, &handle, &diag), FOVEA_OK) << diag.text;
        const fovea::Plan plan(handle);
        return handle ? plan.info().binding_bytes[FOVEA_BIND_K] : 0;
    };
    const auto as_is = [](D&) {};
    const auto one_head = [](D& d) { d.batch = d.heads_kv = 1; };
    const auto packed_rows = [](D& d) { d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_kv = 12; };
    const auto empty = [](D& d) { d.len_kv = 0; };
    EXPECT_EQ(k_bytes({FOVEA_BROADCAST, FOVEA_BROADCAST, 32}, as_is), 16u * 32 * 4);
    EXPECT_EQ(k_bytes({FOVEA_BROADCAST, 16 * 32, 32}, as_is), 2u * 16 * 32 * 4);
    EXPECT_EQ(k_bytes({2 * 16 * 32, 16 * 32, FOVEA_BROADCAST}, as_is), (3u * 16 * 32 + 32) * 4);
    EXPECT_EQ(k_bytes({0, 0, 33}, one_head), (15u * 33 + 32) * 4);
    EXPECT_EQ(k_bytes({0, 32, 64}, packed_rows), 12u * 64 * 4);
    EXPECT_EQ(k_bytes({0, FOVEA_BROADCAST, 32}, packed_rows), 12u * 32 * 4);
    EXPECT_EQ(k_bytes({0, 0, 32}, empty), 0u);
}

// Unusual layouts in which every row has separate bytes.
TEST(Refusal, rows_of_o_may_lie_in_any_order_that_keeps_them_apart) {
    const FoveaDeviceProperties properties = cpu_device(2);
    for (const FoveaStrides& o : {FoveaStrides{4 * 8 * 24, 24, 4 * 24}, FoveaStrides{4 * 24, 24, 2 * 4 * 24},
                                  FoveaStrides{24, 2 * 8 * 24, 2 * 24}, FoveaStrides{0, 0, 0}}) {
        FoveaAttentionDesc desc = good();
        desc.o_strides = o;
        fovea::Diag diag;
        EXPECT_EQ(foveaCheckAttention(&properties, &desc, &diag), FOVEA_OK) << diag.text;
    }
}

// Everything that is checked as a number, at its last good value: one step further is in the tables above.
TEST(Refusal, limits_are_where_the_header_says) {
    const std::function<void(D&)> edits[] = {
        [](D& d) { d.dim_qk = 65536; },
        [](D& d) { d.dim_v = 65536; },
        [](D& d) { d.len_q = k2_30; },
        [](D& d) { d.len_kv = k2_30; },
        [](D& d) { d.batch = uint32_t(k2_30 / 4), d.len_q = 1; },
        [](D& d) { d.align = FOVEA_ALIGN_OFFSET, d.q_offset = int64_t(k2_30); },
        [](D& d) { d.align = FOVEA_ALIGN_OFFSET, d.q_offset = -int64_t(k2_30); },
        [](D& d) { d.dropout_p = 0x1.fffffep-1f; },
        [](D& d) { d.scale = -2.3e38f; },
        [](D& d) { d.softcap = 0x1p-126f; },
        [](D& d) { window(d), d.window_left = d.window_right = -1; },
        [](D& d) { window(d), d.window_left = d.window_right = INT64_MAX; },
        [](D& d) { d.flags = FOVEA_FLAG_CAUSAL, d.len_q = d.len_kv; },  // no alignment: as many of both
        [](D& d) { d.flags = FOVEA_FLAG_CAUSAL, d.align = FOVEA_ALIGN_TOP_LEFT; },
        [](D& d) { d.flags = FOVEA_FLAG_CAUSAL, d.align = FOVEA_ALIGN_BOTTOM_RIGHT, d.len_q = 1; },
        [](D& d) { d.mask = matrix(FOVEA_U8), d.mask.batch = 2, d.mask.heads = 4, d.mask.keys = 16; },
        [](D& d) { d.bias = matrix(FOVEA_F16), d.bias.rows = 1; },
        [](D& d) { pages(d), d.page_count = uint32_t(k2_30); },
        [](D& d) { pages(d), d.page_size = uint32_t(k2_30), d.block_table_pages = 1, d.page_count = 1; },
        [](D& d) { d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_q = k2_30; },
    };
    for (const auto& edit : edits) {
        SCOPED_TRACE(&edit - edits);
        FoveaAttentionDesc desc = good();
        edit(desc);
        fovea::Diag diag;
        EXPECT_EQ(foveaCheckAttention(nullptr, &desc, &diag), FOVEA_OK) << diag.text;
    }
}

// Kernels read booleans and halves in whole words: what a matrix needs is rounded up to four bytes.
TEST(Refusal, matrices_need_whole_words) {
    FoveaAttentionDesc desc = good();
    desc.len_q = 3, desc.len_kv = 5;
    desc.mask = matrix(FOVEA_U8), desc.bias = matrix(FOVEA_F16), desc.dropout_mask = matrix(FOVEA_U8);
    const FoveaPlanInfo info = fovea::plan_cpu(desc, 1).value().info();
    EXPECT_EQ(info.binding_bytes[FOVEA_BIND_MASK], 16u);
    EXPECT_EQ(info.binding_bytes[FOVEA_BIND_DROPOUT_MASK], 16u);
    EXPECT_EQ(info.binding_bytes[FOVEA_BIND_BIAS], 32u);
}

TEST(Refusal, null_and_foreign_arguments) {
    const FoveaDeviceProperties properties = cpu_device(2);
    const FoveaAttentionDesc desc = good();
    FoveaPlan plan = nullptr;
    fovea::Diag diag;
    EXPECT_EQ(foveaCheckAttention(nullptr, nullptr, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "desc");
    EXPECT_EQ(foveaPlanAttention(&properties, nullptr, nullptr, &plan, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "desc");
    EXPECT_EQ(foveaPlanAttention(nullptr, &desc, nullptr, &plan, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "properties");
    EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, nullptr, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "out");
    FoveaDeviceProperties other = properties;
    other.struct_size = 0;
    EXPECT_EQ(foveaPlanAttention(&other, &desc, nullptr, &plan, &diag), FOVEA_ABI_MISMATCH);
    other = properties, other.backend = FoveaBackend(7);
    EXPECT_EQ(foveaPlanAttention(&other, &desc, nullptr, &plan, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "properties.backend");
    other = properties, other.device_class = FoveaDeviceClass(4);
    EXPECT_EQ(foveaPlanAttention(&other, &desc, nullptr, &plan, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "properties.device_class");
    FoveaHostAllocator half{};
    half.allocate = [](void*, size_t, size_t) -> void* { return nullptr; };
    EXPECT_EQ(foveaPlanAttention(&properties, &desc, &half, &plan, &diag), kInvalid);
    half.release = [](void*, void*, size_t) {};
    EXPECT_EQ(foveaPlanAttention(&properties, &desc, &half, &plan, &diag), FOVEA_OUT_OF_HOST_MEMORY);
    EXPECT_EQ(plan, nullptr);
}

// A caller built against a later header, with and without using what it added.
TEST(Refusal, a_newer_struct_counts_only_while_its_tail_is_zero) {
    struct {
        FoveaAttentionDesc desc;
        uint64_t added;
    } newer{good(), 0};
    newer.desc.struct_size = sizeof newer;
    fovea::Diag diag;
    EXPECT_EQ(foveaCheckAttention(nullptr, &newer.desc, &diag), FOVEA_OK) << diag.text;
    newer.added = 1;
    EXPECT_EQ(foveaCheckAttention(nullptr, &newer.desc, &diag), FOVEA_ABI_MISMATCH);
    EXPECT_STREQ(diag.field, "struct_size");
}

// For an impossible size nothing after the struct is read: it ends at the end of its page.
TEST(Refusal, a_struct_size_beyond_reason_is_not_believed) {
    FoveaAttentionDesc desc = good();
    fovea::Diag diag;
    for (const uint32_t size : {4097u, 0x7fffu, 0x7fffffffu, UINT32_MAX}) {
        desc.struct_size = size;
        EXPECT_EQ(foveaCheckAttention(nullptr, &desc, &diag), FOVEA_ABI_MISMATCH);
        EXPECT_STREQ(diag.field, "struct_size");
        EXPECT_NE(strstr(diag.text, std::to_string(size).c_str()), nullptr) << diag.text;
        EXPECT_NE(strstr(diag.text, "4096"), nullptr) << diag.text;
    }
}

TEST(Refusal, an_older_struct_has_zeros_for_its_missing_tail) {
    FoveaAttentionDesc desc = good();
    desc.workspace_limit = 1;  // would be rejected
    desc.kernel = FOVEA_KERNEL_REFERENCE;
    desc.struct_size = offsetof(FoveaAttentionDesc, workspace_limit);
    const FoveaDeviceProperties properties = cpu_device(2);
    fovea::Diag diag;
    EXPECT_EQ(foveaCheckAttention(&properties, &desc, &diag), FOVEA_OK) << diag.text;
}

// Sizes on both sides of what 27, 31 and 32 bits hold come out exact; nothing wraps.
TEST(Refusal, sizes_around_powers_of_two_are_exact) {
    FoveaDeviceProperties properties = cpu_device(2);
    for (const uint64_t bytes : {k2_27, k2_31, k2_32, uint64_t{1} << 40}) {
        for (const int64_t step : {-1, 0, 1}) {
            FoveaAttentionDesc d = foveaAttentionDesc();
            d.batch = d.heads_q = d.heads_kv = 1;
            d.dim_qk = bytes >= k2_31 ? 1024 : 1;
            d.dim_v = 1;
            d.len_q = 1;
            d.len_kv = uint64_t(int64_t(bytes / (4 * d.dim_qk)) + step);
            d.workspace_limit = uint64_t{1} << 50;
            FoveaPlan handle = nullptr;
            fovea::Diag diag;
            ASSERT_EQ(foveaPlanAttention(&properties, &d, nullptr, &handle, &diag), FOVEA_OK) << diag.text;
            const fovea::Plan plan(handle);
            EXPECT_EQ(plan.info().binding_bytes[FOVEA_BIND_K],
                      uint64_t(int64_t(bytes) + step * 4 * d.dim_qk));
        }
    }
}

// Every accepted scale is finite as an exponent of 2: with queries of zeros all keys weigh the same.
TEST(Refusal, the_largest_scale_computes) {
    for (const FoveaKernel kernel : {FOVEA_KERNEL_DECODE, FOVEA_KERNEL_FLASH, FOVEA_KERNEL_STAGED,
                                     FOVEA_KERNEL_PLAIN, FOVEA_KERNEL_REFERENCE}) {
        fovea::Attention call;
        call.batch(1).heads(1).lengths(1, 4).dims(8).scale(2.3e38f).kernel(kernel);
        call.outputs(FOVEA_OUTPUT_O | (kernel == FOVEA_KERNEL_STAGED ? FOVEA_OUTPUT_WEIGHTS : 0));
        const fovea::Result<fovea::Plan> plan = fovea::plan_cpu(call);
        ASSERT_TRUE(plan) << plan.error().text;
        std::vector<float> q(8, 0.0f), k(32, 1.0f), v(32, 3.0f), o(8), weights(4);
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        bindings[FOVEA_BIND_Q] = {q.data(), 32}, bindings[FOVEA_BIND_K] = {k.data(), 128};
        bindings[FOVEA_BIND_V] = {v.data(), 128}, bindings[FOVEA_BIND_O] = {o.data(), 32};
        if (kernel == FOVEA_KERNEL_STAGED) bindings[FOVEA_BIND_WEIGHTS] = {weights.data(), 16};
        fovea::Workspace workspace;
        const fovea::Result<void> ran = fovea::run_on_host(*plan, bindings, workspace);
        ASSERT_TRUE(ran) << ran.error().text;
        for (const float value : o) EXPECT_EQ(value, 3.0f) << fovea::kernel_name(kernel);
    }
}

// Every p has an answer: those that no call takes, too.
TEST(Dropout, keeps_all_or_nothing_beyond_its_range) {
    for (uint64_t key = 0; key < 64; ++key) {
        for (const float none : {0.0f, -0.0f, -1.0f, -kInf})
            EXPECT_EQ(foveaDropoutKeeps(none, 7, 0, 1, 2, key), 1u) << none;
        for (const float all : {1.0f, 2.0f, kInf, kNan})
            EXPECT_EQ(foveaDropoutKeeps(all, 7, 0, 1, 2, key), 0u) << all;
    }
}

}  // namespace
