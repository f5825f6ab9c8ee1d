// Bad descriptions of rope, linear, append, gather and merge.
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
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    FoveaPlan plan = nullptr;
    fovea::Diag diag;
    ASSERT_EQ(make(&properties, &good, nullptr, &plan, &diag), FOVEA_OK) << diag.text;
    foveaDestroyPlan(plan);
    EXPECT_EQ(make(&properties, nullptr, nullptr, &plan, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "desc");
    for (const Bad<Desc>& bad : table) {
        SCOPED_TRACE(bad.what);
        Desc desc = good;
        bad.edit(desc);
        fovea::Diag why;
        EXPECT_EQ(make(&properties, &desc, nullptr, &plan, &why), bad.code);
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
     kInvalid, "x_strides.row"},
    {"x told by the distance of its rows alone",
     [](Rope& d) {
         d.x_strides = {0, 0, 16};
     },
     kInvalid, "x_strides.batch"},
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
    {"y of an unknown type", [](Linear& d) { d.y_type = FoveaDtype(12); }, kInvalid, "y_type"},
    {"w of an unknown type", [](Linear& d) { d.w_type = FoveaDtype(12); }, kInvalid, "w_type"},
    {"rows of 2^32", [](Linear& d) { d.rows = k2_32; }, kOverflow, "rows"},
    {"a kernel of attention", [](Linear& d) { d.kernel = FOVEA_KERNEL_FLASH; }, kInvalid, "kernel"},
    {"precision", [](Linear& d) { d.precision = FoveaPrecision(4); }, kInvalid, "precision"},
    {"int8 with float weights", [](Linear& d) { d.precision = FOVEA_PRECISION_INT8_INPUTS; }, kInvalid,
     "precision"},
    {"bias twice", [](Linear& d) { d.has_bias = 2; }, kInvalid, "has_bias"},
    {"transposed twice", [](Linear& d) { d.weight_is_in_out = 2; }, kInvalid, "weight_is_in_out"},
    {"rows of x overlapping", [](Linear& d) { d.x_row_stride = 7; }, kInvalid, "x_row_stride"},
    {"rows of y overlapping", [](Linear& d) { d.y_row_stride = 5; }, kInvalid, "y_row_stride"},
    {"rows of w overlapping", [](Linear& d) { d.w_row_stride = 3; }, kInvalid, "w_row_stride"},
    {"x running backwards", [](Linear& d) { d.x_row_stride = -8; }, kInvalid, "x_row_stride"},
    {"y past 64 bits", [](Linear& d) { d.y_row_stride = INT64_MAX; }, kOverflow, "y_row_stride"},
    {"rows of a part of a block", [](Linear& d) { d.w_type = FOVEA_Q8_0; }, kInvalid, "n_in"},
    {"rows of blocks that begin in one",
     [](Linear& d) { d.w_type = FOVEA_Q4_0, d.n_in = 32, d.w_row_stride = 40; }, kInvalid, "w_row_stride"},
    {"rows of a part of a block of 256", [](Linear& d) { d.w_type = FOVEA_Q6_K, d.n_in = 128; }, kInvalid,
     "n_in"},
    {"y of a k-quant", [](Linear& d) { d.y_type = FOVEA_Q4_K, d.n_out = 256; }, kInvalid, "y_type"},
    {"blocks transposed",
     [](Linear& d) { d.w_type = FOVEA_Q4_0, d.n_in = d.n_out = 32, d.weight_is_in_out = 1; }, kInvalid,
     "weight_is_in_out"},
    {"weights of 8-bit floats", [](Linear& d) { d.w_type = FOVEA_F8_E4M3; }, kInvalid, "w_type"},
    {"x of blocks", [](Linear& d) { d.x_type = FOVEA_Q8_0, d.n_in = 32; }, kInvalid, "x_type"},
    {"y of blocks", [](Linear& d) { d.y_type = FOVEA_Q8_0, d.n_out = 32; }, kInvalid, "y_type"},
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
    {"table twice", [](Append& d) { d.has_sequences = 2; }, kInvalid, "has_sequences"},
    {"a rotation that is neither on nor off",
     [](Append& d) { d.rotate = 2, d.y_type = FOVEA_Q8_0, d.dim = 32; }, kInvalid, "rotate"},
    {"a rotated float cache", [](Append& d) { d.rotate = 1; }, kInvalid, "rotate"},
    {"a rotated cache of 8-bit floats", [](Append& d) { d.rotate = 1, d.y_type = FOVEA_F8_E4M3; }, kInvalid,
     "rotate"},
    {"rows of the cache overlapping",
     [](Append& d) {
         d.y_strides = {600, 100, 4};
     },
     kInvalid, "y_strides"},
    {"x running backwards",
     [](Append& d) {
         d.x_strides = {0, -2, 8};
     },
     kInvalid, "x_strides.head"},
    {"heads of the cache in one place",
     [](Append& d) {
         d.y_strides = {160, 0, 8};
     },
     kInvalid, "y_strides.head"},
    {"heads of the cache as one",
     [](Append& d) {
         d.y_strides = {160, FOVEA_BROADCAST, 8};
     },
     kInvalid, "y_strides"},
    {"rows past the room", [](Append& d) { d.first_row = 16; }, FOVEA_LIMIT_EXCEEDED, "first_row"},
    {"a first row past the room", [](Append& d) { d.first_row = 900; }, FOVEA_LIMIT_EXCEEDED, "first_row"},
    {"more rows than room", [](Append& d) { d.capacity = 4; }, FOVEA_LIMIT_EXCEEDED, "len"},
    {"more rows than room, placed by a table", [](Append& d) { d.capacity = 4, d.has_sequences = 1; },
     FOVEA_LIMIT_EXCEEDED, "len"},
    {"a first row beside a table", [](Append& d) { d.first_row = 1, d.has_sequences = 1; }, kInvalid,
     "first_row"},
    {"pages of no size", [](Append& d) { d.page_count = 3; }, kInvalid, "page_size"},
    {"a pool of 2^31 pages", [](Append& d) { pages(d), d.page_count = 1u << 31; }, kOverflow, "page_count"},
    {"pages of 2^31 rows", [](Append& d) { pages(d), d.page_size = 1u << 31; }, kOverflow, "page_size"},
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

using Gather = FoveaGatherDesc;
void pages(Gather& d) { d.page_size = 4, d.page_count = 9, d.block_table_pages = 5; }
const Bad<Gather> kGather[] = {
    {"struct_size not set", [](Gather& d) { d.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
    {"no batch", [](Gather& d) { d.batch = 0; }, kInvalid, "batch"},
    {"no heads", [](Gather& d) { d.heads = 0; }, kInvalid, "heads"},
    {"no head size", [](Gather& d) { d.dim = 0; }, kInvalid, "dim"},
    {"no cache", [](Gather& d) { d.capacity = 0; }, kInvalid, "capacity"},
    {"length of 2^32", [](Gather& d) { d.len = k2_32; }, kOverflow, "len"},
    {"x of bytes", [](Gather& d) { d.x_type = FOVEA_U8; }, kInvalid, "x_type"},
    {"y of integers", [](Gather& d) { d.y_type = FOVEA_I32; }, kInvalid, "y_type"},
    {"lists for some of the heads", [](Gather& d) { d.position_heads = 2; }, kInvalid, "position_heads"},
    {"reserved0", [](Gather& d) { d.reserved0 = 1; }, kInvalid, "reserved0"},
    {"pages of no size", [](Gather& d) { d.page_count = 3; }, kInvalid, "page_size"},
    {"a pool of 2^31 pages", [](Gather& d) { pages(d), d.page_count = 1u << 31; }, kOverflow, "page_count"},
    {"pages of 2^31 rows", [](Gather& d) { pages(d), d.page_size = 1u << 31; }, kOverflow, "page_size"},
    {"a pool without pages", [](Gather& d) { pages(d), d.page_count = 0; }, kInvalid, "page_count"},
    {"a block table that is too short", [](Gather& d) { pages(d), d.block_table_pages = 4; }, kInvalid,
     "block_table_pages"},
    {"rows of y overlapping",
     [](Gather& d) {
         d.y_strides = {200, 40, 4};
     },
     kInvalid, "y_strides"},
};

TEST(OperationRefusal, gather) {
    Gather good{};
    good.struct_size = sizeof good;
    good.batch = 2, good.heads = 3, good.dim = 8, good.len = 5, good.capacity = 20;
    expect_refusals(good, foveaPlanGather, kGather);
}

using Merge = FoveaMergeDesc;
const Bad<Merge> kMerge[] = {
    {"struct_size not set", [](Merge& d) { d.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
    {"no parts", [](Merge& d) { d.parts = 0; }, kInvalid, "parts"},
    {"more parts than the tree has places", [](Merge& d) { d.parts = FOVEA_MERGE_MAX_PARTS + 1; },
     FOVEA_LIMIT_EXCEEDED, "parts"},
    {"no batch", [](Merge& d) { d.batch = 0; }, kInvalid, "batch"},
    {"no heads", [](Merge& d) { d.heads = 0; }, kInvalid, "heads"},
    {"no head size", [](Merge& d) { d.dim = 0; }, kInvalid, "dim"},
    {"length of 2^32", [](Merge& d) { d.len = k2_32; }, kOverflow, "len"},
    {"x of bytes", [](Merge& d) { d.x_type = FOVEA_U8; }, kInvalid, "x_type"},
    {"y of integers", [](Merge& d) { d.y_type = FOVEA_I32; }, kInvalid, "y_type"},
    {"a kernel that does not merge", [](Merge& d) { d.kernel = FOVEA_KERNEL_FLASH; }, kInvalid, "kernel"},
    {"parts running backwards", [](Merge& d) { d.x_part_stride = -1; }, kInvalid, "x_part_stride"},
    {"parts past 64 bits", [](Merge& d) { d.x_part_stride = INT64_MAX; }, kOverflow, "parts"},
    {"rows of y overlapping",
     [](Merge& d) {
         d.y_strides = {200, 40, 4};
     },
     kInvalid, "y_strides"},
};

TEST(OperationRefusal, merge) {
    Merge good{};
    good.struct_size = sizeof good;
    good.parts = 3, good.batch = 2, good.heads = 3, good.dim = 8, good.len = 5;
    expect_refusals(good, foveaPlanMerge, kMerge);
}

using Tile = FoveaMapTileDesc;
const Bad<Tile> kTile[] = {
    {"struct_size not set", [](Tile& d) { d.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
    {"an entry that is not there", [](Tile& d) { d.batch = 2; }, kInvalid, "tile.batch"},
    {"a head that is not there", [](Tile& d) { d.first_head = 6; }, kInvalid, "first_head"},
    {"heads past the last", [](Tile& d) { d.first_head = 4, d.head_count = 3; }, kInvalid, "head_count"},
    {"heads that wrap around", [](Tile& d) { d.first_head = 2, d.head_count = UINT32_MAX; }, kInvalid,
     "head_count"},
    {"all heads from the second on, and one more", [](Tile& d) { d.first_head = 1, d.head_count = 6; },
     kInvalid, "head_count"},
    {"rows past the last", [](Tile& d) { d.first_row = 50; }, kInvalid, "first_row"},
    {"keys past the last", [](Tile& d) { d.first_key = 70; }, kInvalid, "first_key"},
    {"row_count of 2^32", [](Tile& d) { d.row_count = k2_32; }, kOverflow, "row_count"},
    {"key_count of 2^32", [](Tile& d) { d.key_count = k2_32; }, kOverflow, "key_count"},
    {"more pixels than rows", [](Tile& d) { d.row_count = 9, d.height = 10; }, kInvalid, "height"},
    {"more pixels than keys", [](Tile& d) { d.key_count = 9, d.width = 10; }, kInvalid, "width"},
    {"too many pixels", [](Tile& d) { d.key_count = 1u << 20; }, FOVEA_LIMIT_EXCEEDED, "width"},
    {"too many rows to a pixel", [](Tile& d) { d.row_count = 1u << 24, d.height = 2; }, FOVEA_LIMIT_EXCEEDED,
     "height"},
    {"outputs unknown", [](Tile& d) { d.outputs = 4; }, kInvalid, "tile.outputs"},
    {"sampled twice", [](Tile& d) { d.sampled = 2; }, kInvalid, "sampled"},
};

FoveaAttentionDesc tiled_call() {
    FoveaAttentionDesc call = foveaAttentionDesc();
    call.batch = 2, call.heads_q = 6, call.heads_kv = 3, call.dim_qk = 8, call.dim_v = 4;
    call.len_q = 50, call.len_kv = 70;
    return call;
}

TEST(OperationRefusal, map_tile) {
    Tile good{};
    good.struct_size = sizeof good;
    const FoveaAttentionDesc call = tiled_call();
    const auto make = [&](const FoveaDeviceProperties* properties, const Tile* tile,
                          const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
        const FoveaResult r = foveaPlanMapTile(properties, &call, tile, allocator, out, diag);
        if (!tile && diag) strcpy(diag->field, strcmp(diag->field, "tile") == 0 ? "desc" : "?");
        return r;
    };
    expect_refusals(good, make, kTile);
}

TEST(OperationRefusal, map_tile_refuses_a_bad_call) {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    Tile tile{};
    tile.struct_size = sizeof tile;
    FoveaPlan plan = nullptr;
    fovea::Diag diag;
    FoveaAttentionDesc call = tiled_call();
    call.dim_qk = 0;
    EXPECT_EQ(foveaPlanMapTile(&properties, &call, &tile, nullptr, &plan, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "dim_qk");
    call = tiled_call();
    call.dropout_p = 0.999f;
    EXPECT_EQ(foveaPlanMapTile(&properties, &call, &tile, nullptr, &plan, &diag), FOVEA_UNSUPPORTED);
    EXPECT_STREQ(diag.field, "dropout_p");
    EXPECT_EQ(foveaPlanMapTile(&properties, nullptr, &tile, nullptr, &plan, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "desc");
    EXPECT_EQ(plan, nullptr);
}

TEST(OperationRefusal, map_tile_takes_the_last_heads_rows_and_keys) {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    const FoveaAttentionDesc call = tiled_call();
    const std::function<void(Tile&)> edits[] = {
        [](Tile& d) { d.batch = 1, d.first_head = 5, d.head_count = 1; },
        [](Tile& d) { d.head_count = 6; },
        [](Tile& d) { d.first_row = 49, d.first_key = 69; },
        [](Tile& d) { d.row_count = uint64_t{1} << 22, d.height = 1; },
        [](Tile& d) { d.key_count = uint64_t{1} << 30, d.width = FOVEA_TILE_MAX_SIDE; },
        [](Tile& d) { d.row_count = d.key_count = 9, d.height = d.width = 9; },
    };
    for (const auto& edit : edits) {
        SCOPED_TRACE(&edit - edits);
        Tile tile{};
        tile.struct_size = sizeof tile;
        edit(tile);
        fovea::Diag diag;
        FoveaPlan plan = nullptr;
        EXPECT_EQ(foveaPlanMapTile(&properties, &call, &tile, nullptr, &plan, &diag), FOVEA_OK) << diag.text;
        foveaDestroyPlan(plan);
    }
    Tile tile{};
    tile.struct_size = sizeof tile;
    tile.row_count = (uint64_t{1} << 22) + 1, tile.height = 1;
    fovea::Diag diag;
    FoveaPlan plan = nullptr;
    EXPECT_EQ(foveaPlanMapTile(&properties, &call, &tile, nullptr, &plan, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "height");
}

// Counts cells one by one, to check the cost that a plan reports.
uint64_t counted_pairs(const FoveaAttentionDesc& d, uint64_t i0, uint64_t i1, uint64_t j0, uint64_t j1) {
    const int64_t offset = d.align == FOVEA_ALIGN_BOTTOM_RIGHT ? int64_t(d.len_kv) - int64_t(d.len_q)
                           : d.align == FOVEA_ALIGN_OFFSET     ? d.q_offset
                                                               : 0;
    uint64_t count = 0;
    for (auto i = int64_t(i0); i < int64_t(i1); ++i) {
        for (auto j = int64_t(j0); j < int64_t(j1); ++j) {
            bool seen = !(d.flags & FOVEA_FLAG_CAUSAL) || j <= i + offset;
            if (d.flags & FOVEA_FLAG_WINDOW) {
                seen = seen && (d.window_left < 0 || j >= i + offset - d.window_left);
                seen = seen && (d.window_right < 0 || j <= i + offset + d.window_right);
            }
            if (d.mask.present) seen = seen && j < int64_t(d.mask.keys);
            count += seen;
        }
    }
    return count;
}

TEST(VisitedPairs, are_the_cells_that_windows_and_causal_bounds_leave) {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    for (const FoveaAlign align : {FOVEA_ALIGN_TOP_LEFT, FOVEA_ALIGN_BOTTOM_RIGHT, FOVEA_ALIGN_OFFSET}) {
        for (const int64_t left : {-2, -1, 0, 3, 100}) {
            for (const int64_t right : {-1, 0, 5}) {
                for (const bool causal : {false, true}) {
                    FoveaAttentionDesc call = tiled_call();
                    call.kernel = FOVEA_KERNEL_PLAIN;
                    call.align = align;
                    if (align == FOVEA_ALIGN_OFFSET) call.q_offset = -7;
                    if (causal) call.flags |= FOVEA_FLAG_CAUSAL;
                    if (left >= -1) {
                        call.flags |= FOVEA_FLAG_WINDOW;
                        call.window_left = left, call.window_right = right;
                    }
                    if (right == 5) call.mask.present = 1, call.mask.type = FOVEA_U8, call.mask.keys = 61;
                    SCOPED_TRACE(testing::Message() << "align " << int(align) << " window " << left << ", "
                                                    << right << (causal ? " causal" : ""));
                    const auto whole = fovea::plan_attention(properties, call);
                    ASSERT_TRUE(whole) << whole.error().text;
                    EXPECT_EQ(whole->info().visited_pairs, 12.0 * double(counted_pairs(call, 0, 50, 0, 70)));
                    Tile tile{};
                    tile.struct_size = sizeof tile;
                    tile.first_head = 2, tile.head_count = 3;
                    tile.first_row = 11, tile.row_count = 60, tile.first_key = 9, tile.key_count = 33;
                    const auto part = fovea::plan_map_tile(properties, call, tile);
                    ASSERT_TRUE(part) << part.error().text;
                    EXPECT_EQ(part->info().visited_pairs, 3.0 * double(counted_pairs(call, 11, 50, 9, 42)));
                }
            }
        }
    }
}

}  // namespace
