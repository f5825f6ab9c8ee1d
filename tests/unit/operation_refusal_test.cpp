// Bad descriptions of rope, linear and append.
#include <fovea/fovea.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

namespace {

constexpr uint64_t k2_32 = uint64_t{1} << 32;
constexpr FoveaResult kInvalid = FOVEA_INVALID_ARGUMENT, kOverflow = FOVEA_SIZE_OVERFLOW;

template <class Desc>
struct Bad {
    const char* what;
    std::function<void(Desc&)> edit;
    FoveaResult code;
    const char* field;
};

template <class Desc, class Make, size_t N>
void expect_refusals(Desc good, Make make, const Bad<Desc> (&table)[N]) {
    FoveaDeviceFacts facts{};
    facts.struct_size = sizeof facts;
    FoveaPlan plan = nullptr;
    fovea::Diag diag;
    ASSERT_EQ(make(&facts, &good, nullptr, &plan, &diag), FOVEA_OK) << diag.text;
    foveaDestroyPlan(plan);
    EXPECT_EQ(make(&facts, nullptr, nullptr, &plan, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "desc");
    for (const Bad<Desc>& bad : table) {
        SCOPED_TRACE(bad.what);
        Desc desc = good;
        bad.edit(desc);
        fovea::Diag why;
        EXPECT_EQ(make(&facts, &desc, nullptr, &plan, &why), bad.code);
        EXPECT_STREQ(why.field, bad.field);
        EXPECT_NE(why.text[0], '\0');
        EXPECT_EQ(plan, nullptr);
    }
}

using Rope = FoveaRopeDesc;
const Bad<Rope> kRope[] = {
    {"struct_size not set", [](Rope& d) { d.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
    {"no batch", [](Rope& d) { d.batch = 0; }, kInvalid, "batch"},
    {"no heads", [](Rope& d) { d.heads = 0; }, kInvalid, "heads"},
    {"no head size", [](Rope& d) { d.dim = 0; }, kInvalid, "dim"},
    {"x of bytes", [](Rope& d) { d.x_type = FOVEA_U8; }, kInvalid, "x_type"},
    {"y of integers", [](Rope& d) { d.y_type = FOVEA_I32; }, kInvalid, "y_type"},
    {"length of 2^32", [](Rope& d) { d.len = k2_32; }, kOverflow, "len"},
    {"table of 2^32 rows", [](Rope& d) { d.table_rows = k2_32; }, kOverflow, "table_rows"},
    {"odd rotary_dim", [](Rope& d) { d.rotary_dim = 5; }, kInvalid, "rotary_dim"},
    {"odd dim rotated whole", [](Rope& d) { d.dim = 7; }, kInvalid, "rotary_dim"},
    {"rotary_dim past dim", [](Rope& d) { d.rotary_dim = 18; }, kInvalid, "rotary_dim"},
    {"a kernel of attention", [](Rope& d) { d.kernel = FOVEA_KERNEL_FLASH; }, kInvalid, "kernel"},
    {"reserved0", [](Rope& d) { d.reserved0 = 1; }, kInvalid, "reserved0"},
    {"interleaved twice", [](Rope& d) { d.interleaved = 2; }, kInvalid, "interleaved"},
    {"x running backwards",
     [](Rope& d) {
         d.x_strides = {0, 0, -16};
     },
     kInvalid, "x_strides"},
    {"rows of y overlapping",
     [](Rope& d) {
         d.y_strides = {240, 80, 15};
     },
     kInvalid, "y_strides"},
    {"x past 64 bits",
     [](Rope& d) {
         d.x_strides = {INT64_MAX, 80, 16};
     },
     kOverflow, "x_strides"},
};

TEST(OperationRefusal, rope) {
    Rope good{};
    good.struct_size = sizeof good;
    good.batch = 2, good.heads = 3, good.dim = 16, good.len = 5;
    expect_refusals(good, foveaPlanRope, kRope);
}

using Linear = FoveaLinearDesc;
const Bad<Linear> kLinear[] = {
    {"struct_size not set", [](Linear& d) { d.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
    {"no inputs", [](Linear& d) { d.n_in = 0; }, kInvalid, "n_in"},
    {"no outputs", [](Linear& d) { d.n_out = 0; }, kInvalid, "n_out"},
    {"x of bytes", [](Linear& d) { d.x_type = FOVEA_U8; }, kInvalid, "x_type"},
    {"w of integers", [](Linear& d) { d.w_type = FOVEA_I32; }, kInvalid, "w_type"},
    {"y of an unknown type", [](Linear& d) { d.y_type = FoveaDtype(9); }, kInvalid, "y_type"},
    {"rows of 2^32", [](Linear& d) { d.rows = k2_32; }, kOverflow, "rows"},
    {"a kernel of attention", [](Linear& d) { d.kernel = FOVEA_KERNEL_DECODE; }, kInvalid, "kernel"},
    {"reserved0", [](Linear& d) { d.reserved0 = 1; }, kInvalid, "reserved0"},
    {"bias twice", [](Linear& d) { d.has_bias = 2; }, kInvalid, "has_bias"},
    {"transposed twice", [](Linear& d) { d.weight_is_in_out = 2; }, kInvalid, "weight_is_in_out"},
    {"rows of x overlapping", [](Linear& d) { d.x_row_stride = 7; }, kInvalid, "x_row_stride"},
    {"rows of y overlapping", [](Linear& d) { d.y_row_stride = 5; }, kInvalid, "y_row_stride"},
    {"rows of w overlapping", [](Linear& d) { d.w_row_stride = 3; }, kInvalid, "w_row_stride"},
    {"x running backwards", [](Linear& d) { d.x_row_stride = -8; }, kInvalid, "x_row_stride"},
    {"y past 64 bits", [](Linear& d) { d.y_row_stride = INT64_MAX; }, kOverflow, "y_row_stride"},
};

TEST(OperationRefusal, linear) {
    Linear good{};
    good.struct_size = sizeof good;
    good.n_in = 8, good.n_out = 6, good.rows = 4;
    expect_refusals(good, foveaPlanLinear, kLinear);
}

using Append = FoveaAppendDesc;
void pages(Append& d) { d.page_size = 4, d.page_count = 9, d.block_table_pages = 5; }
const Bad<Append> kAppend[] = {
    {"struct_size not set", [](Append& d) { d.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
    {"no batch", [](Append& d) { d.batch = 0; }, kInvalid, "batch"},
    {"no heads", [](Append& d) { d.heads = 0; }, kInvalid, "heads"},
    {"no head size", [](Append& d) { d.dim = 0; }, kInvalid, "dim"},
    {"no room", [](Append& d) { d.capacity = 0; }, kInvalid, "capacity"},
    {"room of 2^32 rows", [](Append& d) { d.capacity = k2_32; }, kOverflow, "capacity"},
    {"length of 2^32", [](Append& d) { d.len = k2_32; }, kOverflow, "len"},
    {"first row of 2^32", [](Append& d) { d.first_row = k2_32; }, kOverflow, "first_row"},
    {"x of bytes", [](Append& d) { d.x_type = FOVEA_U8; }, kInvalid, "x_type"},
    {"y of integers", [](Append& d) { d.y_type = FOVEA_I32; }, kInvalid, "y_type"},
    {"table twice", [](Append& d) { d.has_batch_table = 2; }, kInvalid, "has_batch_table"},
    {"reserved0", [](Append& d) { d.reserved0 = 1; }, kInvalid, "reserved0"},
    {"rows of the cache overlapping",
     [](Append& d) {
         d.y_strides = {600, 100, 4};
     },
     kInvalid, "y_strides"},
    {"x running backwards",
     [](Append& d) {
         d.x_strides = {0, -1, 8};
     },
     kInvalid, "x_strides"},
    {"pages of no size", [](Append& d) { d.page_count = 3; }, kInvalid, "page_size"},
    {"a pool without pages", [](Append& d) { pages(d), d.page_count = 0; }, kInvalid, "page_count"},
    {"a block table that is too short", [](Append& d) { pages(d), d.block_table_pages = 4; }, kInvalid,
     "block_table_pages"},
};

TEST(OperationRefusal, append) {
    Append good{};
    good.struct_size = sizeof good;
    good.batch = 2, good.heads = 3, good.dim = 8, good.len = 5, good.capacity = 20;
    expect_refusals(good, foveaPlanAppend, kAppend);
}

}  // namespace
