// The decode kernel widens float16 in its loops: every number of the type, and rows with infinities and NaN
// among finite ones, give the bits that the same numbers give in float32.
#include "kernels/operation_run.hpp"

#include <fovea/half.hpp>

#include <bit>
#include <cmath>
#include <cstring>

namespace fovea::test {
namespace {

constexpr uint64_t kKeys = 1024;
constexpr uint32_t kDim = 64, kHeads = 4;
static_assert(kKeys * kDim == 65536);

using Halves = std::vector<uint16_t>;

// Each finite number of the type in some place; `step` is odd, and those that are not finite become finite.
Halves every_half(uint32_t step) {
    Halves halves(kKeys * kDim);
    for (uint32_t n = 0; n < halves.size(); ++n) {
        halves[n] = uint16_t(n * step);
        if ((halves[n] & 0x7c00) == 0x7c00) halves[n] ^= 0x4000;
    }
    return halves;
}

Bytes bytes_of(const Halves& halves, FoveaDtype type) {
    Bytes bytes(halves.size() * (type == FOVEA_F16 ? 2 : 4));
    for (size_t n = 0; n < halves.size(); ++n) {
        const float wide = half_to_float(halves[n]);
        if (type == FOVEA_F16)
            memcpy(&bytes[n * 2], &halves[n], 2);
        else
            memcpy(&bytes[n * 4], &wide, 4);
    }
    return bytes;
}

Bytes decode(uint32_t target, const Halves& k, const Halves& v, FoveaDtype type) {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = 1, desc.heads_q = kHeads, desc.heads_kv = 1;
    desc.dim_qk = desc.dim_v = kDim, desc.len_q = 1, desc.len_kv = kKeys;
    desc.k_type = desc.v_type = type;
    const Plan plan = plan_of(foveaPlanAttention, desc, cpu_device(1, target));
    const FoveaPlanInfo info = plan.info();
    const bool has_vectors = std::string(foveaCpuTargetName(target)) != "scalar";
    EXPECT_EQ(info.kernel, has_vectors ? FOVEA_KERNEL_DECODE : FOVEA_KERNEL_FLASH);
    Buffers buffers;
    buffers[FOVEA_BIND_K] = bytes_of(k, type), buffers[FOVEA_BIND_V] = bytes_of(v, type);
    for (const uint32_t i : {FOVEA_BIND_Q, FOVEA_BIND_O}) buffers[i].resize(info.binding_bytes[i]);
    Random random(5);
    Bytes& q = buffers[FOVEA_BIND_Q];
    for (size_t n = 0; n < q.size() / 4; ++n) {
        const float x = 1e-4f * bell(random.next());
        memcpy(&q[n * 4], &x, 4);
    }
    const Result<void> done = run_in_place(plan, buffers);
    EXPECT_TRUE(done) << done.error().text;
    return buffers[FOVEA_BIND_O];
}

// How many of the results are NaN.
size_t expect_same(uint32_t target, const Halves& k, const Halves& v) {
    const Bytes narrow = decode(target, k, v, FOVEA_F16), wide = decode(target, k, v, FOVEA_F32);
    size_t nans = 0;
    for (size_t n = 0; n < kHeads * kDim; ++n) {
        uint32_t a = 0, b = 0;
        memcpy(&a, &narrow[n * 4], 4), memcpy(&b, &wide[n * 4], 4);
        const bool nan = std::isnan(std::bit_cast<float>(b));
        nans += nan;
        EXPECT_TRUE(nan ? std::isnan(std::bit_cast<float>(a)) : a == b)
            << "element " << n << ": " << std::bit_cast<float>(a) << " and " << std::bit_cast<float>(b);
    }
    return nans;
}

TEST(Decode, widens_every_half_exactly) {
    for (const uint32_t target : runnable_targets()) {
        SCOPED_TRACE(foveaCpuTargetName(target));
        EXPECT_EQ(expect_same(target, every_half(1), every_half(40503)), 0u);
        EXPECT_EQ(expect_same(target, every_half(40503), every_half(1)), 0u);
    }
}

TEST(Decode, keeps_infinities_and_nans_of_halves) {
    for (const uint32_t target : runnable_targets()) {
        for (const uint16_t special : {0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xffff}) {
            for (const uint64_t place : {uint64_t{5}, uint64_t{700} * kDim + 33, kKeys * kDim - 1}) {
                SCOPED_TRACE(std::string(foveaCpuTargetName(target)) + " " + std::to_string(special) +
                             " at " + std::to_string(place));
                Halves values = every_half(40503), keys = every_half(1);
                values[place] = special;
                const Bytes o = decode(target, keys, values, FOVEA_F16);
                for (uint32_t h = 0; h < kHeads; ++h)
                    EXPECT_FALSE(std::isfinite(element(o, FOVEA_F32, h * kDim + place % kDim)));
                expect_same(target, keys, values);
                keys[place] = special;
                expect_same(target, keys, every_half(3));
            }
        }
    }
}

}  // namespace
}  // namespace fovea::test
