// The map of a mask's blocks changes no bit of any result: with and without it, for masks and biases with
// hidden, clear and mixed blocks, and with NaN in every key that is hidden from all rows.
#include "support/vulkan_executor.hpp"
#include "vulkan/gpu.hpp"

#include <fovea/runtime.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace fovea::test {
namespace {

constexpr uint64_t kQueries = 75, kKeys = 403, kColumns = 397;  // no multiple of a block, a word or a tile

// Hidden blocks, clear blocks and mixed ones; keys 128 to 191 are hidden from every row.
bool shows(uint64_t i, uint64_t j) {
    if (j >= 128 && j < 192) return false;
    const uint64_t block = j / 64 + i / 20;
    return block % 3 == 0 || (block % 3 == 1 && (i * 7 + j * 3) % 5 != 0);
}

struct Shape {
    const char* name;
    uint32_t batch, heads_q, heads_kv, mask_heads;
    bool mask;
    FoveaDtype bias;  // FOVEA_U8: none
    bool one_row;     // broadcast to all rows
    void (*edit)(FoveaAttentionDesc&);
};

FoveaMatrixDesc matrix_of(const Shape& s, FoveaDtype type) {
    FoveaMatrixDesc m{};
    m.present = 1, m.type = type;
    m.batch = s.batch, m.heads = s.mask_heads, m.keys = kColumns;
    m.rows = s.one_row ? 1 : kQueries;
    return m;
}

FoveaAttentionDesc describe(const Shape& s) {
    Attention call;
    call.batch(s.batch).heads(s.heads_q, s.heads_kv).lengths(kQueries, kKeys).dims(24);
    call.kernel(FOVEA_KERNEL_FLASH);
    call.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    if (s.mask) call.desc.mask = matrix_of(s, FOVEA_U8);
    if (s.bias != FOVEA_U8) call.desc.bias = matrix_of(s, s.bias);
    s.edit(call.desc);
    return call.desc;
}

// A bias of -inf where `shows` hides, of 0 in the blocks that it shows, of small numbers elsewhere.
uint32_t bias_bits(uint64_t i, uint64_t j, bool f16) {
    if (!shows(i, j)) return f16 ? 0xfc00 : 0xff800000;
    const bool zero = (j / 64 + i / 20) % 3 == 0;
    return zero ? (j % 2 ? 0 : f16 ? 0x8000u : 0x80000000u) : f16 ? 0x3800 + uint32_t(j % 64) : 0x3f000000;
}

void fill_matrix(std::vector<std::byte>& to, const FoveaMatrixDesc& m) {
    const size_t element = m.type == FOVEA_U8 ? 1 : m.type == FOVEA_F16 ? 2 : 4;
    for (uint64_t n = 0; n < uint64_t{m.batch} * m.heads * m.rows * m.keys; ++n) {
        const uint64_t i = n / m.keys % m.rows + n / (m.keys * m.rows) * 5, j = n % m.keys;
        const uint32_t bits = m.type == FOVEA_U8 ? shows(i, j) : bias_bits(i, j, m.type == FOVEA_F16);
        memcpy(to.data() + n * element, &bits, element);
    }
}

// Rows of keys that every query is kept from.
void poison(std::vector<std::byte>& rows, uint64_t heads) {
    const float nan = NAN;
    for (uint64_t h = 0; h < heads; ++h)
        for (uint64_t n = (h * kKeys + 128) * 24; n < (h * kKeys + 192) * 24; ++n)
            memcpy(rows.data() + n * 4, &nan, 4);
}

void nothing(FoveaAttentionDesc&) {}
void causal(FoveaAttentionDesc& d) {
    d.flags |= FOVEA_FLAG_CAUSAL;
    d.align = FOVEA_ALIGN_BOTTOM_RIGHT;
}
void dropout(FoveaAttentionDesc& d) { d.dropout_p = 0.2f, d.dropout_seed = 9; }
void softcap(FoveaAttentionDesc& d) { d.softcap = 3; }
void slices(FoveaAttentionDesc& d) { d.max_slice_cost = 4e5; }
void splits(FoveaAttentionDesc&) {}

struct Results {
    std::vector<std::byte> o, lse;
    uint32_t dispatches = 0;
    std::string explained;
};

Results run(Engine& engine, const Shape& s, FoveaMaskMap map, const FoveaDeviceProperties& base) {
    FoveaDeviceProperties properties = base;
    properties.mask_map = map;
    if (s.edit == splits) properties.core_count = 64;
    Results results;
    const FoveaAttentionDesc desc = describe(s);
    const Result<Plan> plan = plan_attention(properties, desc);
    EXPECT_TRUE(plan) << plan.error().text;
    if (!plan) return results;
    results.dispatches = plan->info().dispatches_per_slice;
    results.explained = plan->explain();
    std::vector<DeviceBuffer> kept;
    kept.reserve(FOVEA_BIND_COUNT);
    DeviceBuffer* buffers[FOVEA_BIND_COUNT] = {};
    const FoveaPlanInfo info = plan->info();
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.binding_mask >> i & 1)) continue;
        Result<DeviceBuffer> buffer = engine.buffer(info.binding_bytes[i]);
        EXPECT_TRUE(buffer) << buffer.error().text;
        const std::vector<float> values = random_floats((info.binding_bytes[i] + 3) / 4, 11 + i);
        std::vector<std::byte> bytes(info.binding_bytes[i]);
        memcpy(bytes.data(), values.data(), bytes.size());
        if (i == FOVEA_BIND_MASK) fill_matrix(bytes, desc.mask);
        if (i == FOVEA_BIND_BIAS) fill_matrix(bytes, desc.bias);
        if (i == FOVEA_BIND_K || i == FOVEA_BIND_V) poison(bytes, uint64_t{s.batch} * s.heads_kv);
        EXPECT_TRUE(buffer->upload(bytes));
        kept.push_back(std::move(*buffer));
        buffers[i] = &kept.back();
    }
    const Result<RunReport> report = engine.run(*plan, buffers);
    EXPECT_TRUE(report) << report.error().text;
    results.o.resize(info.binding_bytes[FOVEA_BIND_O]);
    results.lse.resize(info.binding_bytes[FOVEA_BIND_LSE]);
    EXPECT_TRUE(buffers[FOVEA_BIND_O]->download(results.o));
    EXPECT_TRUE(buffers[FOVEA_BIND_LSE]->download(results.lse));
    return results;
}

TEST(MaskMap, changes_no_bit) {
    const Shape shapes[] = {
        {"mask for all heads", 2, 4, 4, 1, true, FOVEA_U8, false, nothing},
        {"mask of each head, grouped", 2, 6, 2, 6, true, FOVEA_U8, false, nothing},
        {"mask of one row", 1, 2, 1, 1, true, FOVEA_U8, true, nothing},
        {"mask and causal", 1, 2, 2, 1, true, FOVEA_U8, false, causal},
        {"mask and dropout", 1, 2, 2, 2, true, FOVEA_U8, false, dropout},
        {"mask and softcap", 1, 2, 1, 1, true, FOVEA_U8, false, softcap},
        {"mask in slices", 2, 4, 2, 4, true, FOVEA_U8, false, slices},
        {"mask and keys in splits", 1, 1, 1, 1, true, FOVEA_U8, false, splits},
        {"bias", 1, 4, 4, 1, false, FOVEA_F32, false, nothing},
        {"bias in float16", 1, 4, 2, 4, false, FOVEA_F16, false, slices},
        {"mask and bias", 2, 4, 2, 4, true, FOVEA_F32, false, causal},
    };
    Result<Engine> engine = Engine::open(unchecked_vulkan(true));
    ASSERT_TRUE(engine) << engine.error().text;
    for (const Shape& s : shapes) {
        SCOPED_TRACE(s.name);
        const Results without = run(*engine, s, FOVEA_MASK_MAP_NEVER, engine->properties());
        const Results with = run(*engine, s, FOVEA_MASK_MAP_ALWAYS, engine->properties());
        EXPECT_EQ(with.dispatches, without.dispatches + 1);
        EXPECT_NE(with.explained.find("a map of the mask's blocks first"), std::string::npos);
        EXPECT_NE(without.explained.find("the device's properties ask for none"), std::string::npos);
        EXPECT_EQ(with.explained.find(" splits of ") != std::string::npos, s.edit == splits);
        EXPECT_EQ(with.o, without.o);
        EXPECT_EQ(with.lse, without.lse);
        for (size_t n = 0; n < with.lse.size(); n += 4) {
            float lse;
            memcpy(&lse, with.lse.data() + n, 4);
            ASSERT_FALSE(std::isnan(lse)) << "row " << n / 4;
        }
    }
    for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
}

}  // namespace
}  // namespace fovea::test
