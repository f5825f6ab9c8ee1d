// Quantized keys and values: 8-bit floats against their definition, blocks against plain words, appending and
// gathering them on every instruction set. That ggml makes the same blocks: tests/files/gguf_test.cpp.
#include "kernels/operation_run.hpp"

#include "problem/compressed.hpp"
#include "support/number_types.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace fovea::test {
namespace {

struct Format {
    FoveaDtype type;
    int fraction, bias;
    double largest;
};
constexpr Format kFormats[] = {{FOVEA_F8_E4M3, 3, 7, 448}, {FOVEA_F8_E5M2, 2, 15, 57344}};

// From the tables of the OCP's specification.
double defined(const Format& f, uint32_t code) {
    const uint32_t exponent = code >> f.fraction & (0x7fu >> f.fraction),
                   fraction = code & ((1u << f.fraction) - 1);
    const double sign = code & 0x80u ? -1 : 1, steps = 1 << f.fraction;
    if (f.type == FOVEA_F8_E4M3 && (code & 0x7fu) == 0x7fu) return NAN;
    if (f.type == FOVEA_F8_E5M2 && exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(fraction / steps, 1 - f.bias);
    return sign * std::ldexp(1 + fraction / steps, int(exponent) - f.bias);
}

uint8_t narrowed(const Format& f, float value) {
    uint8_t code = 0;
    compress_row(f.type, &value, 1, &code, 0);
    return code;
}

TEST(Compressed, every_code_of_8_bits_is_the_number_that_it_is_defined_as) {
    for (const Format& f : kFormats) {
        for (uint32_t code = 0; code < 256; ++code) {
            const auto byte = uint8_t(code);
            const float read = compressed_number(&byte, f.type, 0);
            const double exact = defined(f, code);
            if (std::isnan(exact)) {
                EXPECT_TRUE(std::isnan(read)) << f.type << ", " << code;
                continue;
            }
            EXPECT_EQ(read, exact) << f.type << ", " << code;
            EXPECT_EQ(std::signbit(read), std::signbit(exact)) << f.type << ", " << code;
            EXPECT_EQ(narrowed(f, read), byte) << f.type;
        }
    }
}

// The nearest of all codes, of two as near the even one.
TEST(Compressed, numbers_are_rounded_to_the_nearest_code) {
    for (const Format& f : kFormats) {
        std::vector<float> values = {0,     -0.0f, 1e-30f, std::numeric_limits<float>::denorm_min(),
                                     447,   448,   449,    1e30f,
                                     57343, 57344, 61440,  65504};
        for (uint32_t code = 0; code < 0x7b; ++code) {
            const auto middle = float((defined(f, code) + defined(f, code + 1)) / 2);
            for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)})
                values.push_back(x), values.push_back(-x);
        }
        Random random(41);
        for (int n = 0; n < 20000; ++n)
            values.push_back(std::ldexp(float(random.uniform(-2, 2)), int(random.between(-22, 17))));
        for (const float x : values) {
            const double kept = std::fmin(std::fabs(double(x)), f.largest);
            uint32_t best = 0;
            for (uint32_t code = 0; code < 0x7f && defined(f, code) <= f.largest; ++code) {
                const double error = std::fabs(defined(f, code) - kept),
                             least = std::fabs(defined(f, best) - kept);
                if (error < least || (error == least && code % 2 == 0)) best = code;
            }
            EXPECT_EQ(narrowed(f, x), best | (std::signbit(x) ? 0x80u : 0u)) << f.type << ", " << x;
        }
        const bool has_infinity = f.type == FOVEA_F8_E5M2;
        for (const float x : {INFINITY, -INFINITY, NAN}) {
            const uint8_t code = narrowed(f, x);
            EXPECT_EQ(std::isnan(defined(f, code)), std::isnan(x) || !has_infinity);
            EXPECT_EQ(std::isinf(defined(f, code)), std::isinf(x) && has_infinity);
        }
    }
}

TEST(Compressed, a_block_that_cannot_be_told_is_nan_as_a_whole) {
    for (const FoveaDtype type : {FOVEA_Q8_0, FOVEA_Q4_0}) {
        const float most = type == FOVEA_Q8_0 ? 127 * 65504.0f : 8 * 65504.0f;
        for (const float bad : {NAN, INFINITY, -INFINITY, most * 1.01f, most}) {
            float row[64] = {1, 2, 3};
            row[40] = bad;
            unsigned char blocks[68];
            compress_row(type, row, 64, blocks, 0);
            EXPECT_NEAR(compressed_number(blocks, type, 2), 3, 0.25f);
            for (int n = 32; n < 64; ++n)
                EXPECT_EQ(std::isnan(compressed_number(blocks, type, n)), bad != most) << n << ", " << bad;
        }
    }
}

// The error of a call, "" where there is none.
std::string refusal(const FoveaAttentionDesc& d, const FoveaDeviceProperties& properties) {
    Diag diag;
    return foveaCheckAttention(&properties, &d, &diag) == FOVEA_OK
               ? ""
               : std::string(diag.field) + ": " + diag.text;
}

TEST(Compressed, what_cannot_be_is_refused_by_name) {
    const FoveaDeviceProperties cpu = cpu_device(1);
    FoveaAttentionDesc d = foveaAttentionDesc();
    d.batch = d.heads_q = d.heads_kv = 1, d.len_q = 3, d.len_kv = 5, d.dim_qk = 64, d.dim_v = 33;
    d.k_type = FOVEA_Q8_0, d.v_type = FOVEA_F8_E4M3;
    EXPECT_EQ(refusal(d, cpu), "");
    FoveaAttentionDesc bad = d;
    bad.dim_qk = 72;
    EXPECT_EQ(refusal(bad, cpu),
              "dim_qk: dim_qk is 72; it must be a multiple of 32, as the type has blocks of 32 elements");
    bad = d;
    bad.k_strides = {640, 320, 80};
    EXPECT_EQ(
        refusal(bad, cpu),
        "k_strides: k_strides has 80; each must be a multiple of 32, as the type has blocks of 32 elements");
    bad = d;
    bad.v_type = FOVEA_Q4_0;
    EXPECT_EQ(refusal(bad, cpu),
              "dim_v: dim_v is 33; it must be a multiple of 32, as the type has blocks of 32 elements");
    bad = d;
    bad.o_type = FOVEA_Q8_0;
    EXPECT_EQ(refusal(bad, cpu), "o_type: o_type is 7; it must be FOVEA_F32, FOVEA_F16 or FOVEA_BF16");
    bad = d;
    bad.k_type = FoveaDtype(9);
    EXPECT_TRUE(refusal(bad, cpu).starts_with("k_type: k_type is 9; it must be FOVEA_F32,"));

    FoveaAttentionBackwardDesc backward{};
    backward.struct_size = sizeof backward;
    FoveaPlan plan = nullptr;
    Diag diag;
    EXPECT_EQ(foveaPlanAttentionBackward(&cpu, &d, &backward, nullptr, &plan, &diag), FOVEA_UNSUPPORTED);
    EXPECT_STREQ(diag.field, "k_type");

    FoveaAppendDesc append{};
    append.struct_size = sizeof append;
    append.y_type = FOVEA_Q4_0;
    append.batch = append.heads = 1, append.dim = 40, append.len = append.capacity = 1;
    EXPECT_EQ(foveaPlanAppend(&cpu, &append, nullptr, &plan, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.text, "dim is 40; it must be a multiple of 32, as the type has blocks of 32 elements");
}

Bytes expected_cache(const FoveaAppendDesc& d, const Bytes& x, Bytes cache) {
    std::vector<float> row(d.dim);
    for (uint64_t flat = 0; flat < uint64_t{d.batch} * d.heads * d.len; ++flat) {
        for (uint32_t n = 0; n < d.dim; ++n)
            row[n] = load_number(x.data(), d.x_type, int64_t(flat * d.dim + n));
        const uint64_t to = (flat / d.len * d.capacity + d.first_row + flat % d.len) * d.dim;
        store_numbers(cache.data(), d.y_type, int64_t(to), row.data(), d.dim);
    }
    return cache;
}

TEST(Compressed, rows_are_appended_on_every_instruction_set) {
    for_cases(60, [](Random& random) {
        FoveaAppendDesc d{};
        d.struct_size = sizeof d;
        d.x_type = random_type(random), d.y_type = random.pick(quantized_types());
        d.batch = 1 + uint32_t(random.below(2)), d.heads = 1 + uint32_t(random.below(3));
        const uint32_t block = storage_block(d.y_type).numbers;
        d.dim = block > 1 ? block * (1 + uint32_t(random.below(12))) : 1 + uint32_t(random.below(300));
        d.len = 1 + random.below(5), d.first_row = random.below(4),
        d.capacity = d.first_row + d.len + random.below(3);
        const FoveaPlanInfo info = plan_of(foveaPlanAppend, d, cpu_device(1)).info();
        ASSERT_EQ(info.binding_bytes[FOVEA_BIND_Y],
                  uint64_t(stored_bytes(d.y_type, int64_t(d.batch * d.heads * d.capacity * d.dim))));
        const Buffers buffers = random_buffers(random, info, d.x_type, FOVEA_F32);
        const Bytes expected = expected_cache(d, buffers[FOVEA_BIND_X], buffers[FOVEA_BIND_Y]);
        for (const uint32_t target : runnable_targets()) {
            SCOPED_TRACE(foveaCpuTargetName(target));
            EXPECT_TRUE(run(plan_of(foveaPlanAppend, d, cpu_device(2, target)), buffers, 2, 7) == expected);
        }
    });
}

// With one key the weight is 1, so that o is that key's value: every code, and blocks of any bytes.
TEST(Compressed, attention_to_one_key_gives_its_value_on_every_instruction_set) {
    constexpr uint32_t kNumbers = 256;
    Random random(4);
    for (const FoveaDtype type : quantized_types()) {
        Attention call;
        call.batch(1).heads(4, 1).lengths(1, 1).dims(32, kNumbers);
        call.desc.v_type = type;
        std::vector<float> q(4 * 32, 1.0f), k(32, 1.0f), o(4 * kNumbers);
        std::vector<unsigned char> v(size_t(stored_bytes(type, kNumbers)));
        for (size_t n = 0; n < v.size(); ++n)
            v[n] = (unsigned char)(storage_block(type).numbers > 1 ? random.below(256) : n);
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        bindings[FOVEA_BIND_Q] = {q.data(), q.size() * sizeof(float)};
        bindings[FOVEA_BIND_K] = {k.data(), k.size() * sizeof(float)};
        bindings[FOVEA_BIND_V] = {v.data(), v.size()};
        bindings[FOVEA_BIND_O] = {o.data(), o.size() * sizeof(float)};
        for (const uint32_t target : runnable_targets())
            for (const FoveaKernel kernel : {FOVEA_KERNEL_DECODE, FOVEA_KERNEL_FLASH}) {
                SCOPED_TRACE(std::string(foveaCpuTargetName(target)) + ", " + kernel_name(kernel));
                const Result<Plan> plan = plan_attention(cpu_device(1, target), call.kernel(kernel));
                ASSERT_TRUE(plan) << plan.error().text;
                Workspace workspace;
                ASSERT_TRUE(run_on_host(*plan, bindings, workspace));
                for (size_t n = 0; n < o.size(); ++n) {
                    const float wanted = compressed_number(v.data(), type, int64_t(n % kNumbers));
                    if (std::isnan(wanted))
                        ASSERT_TRUE(std::isnan(o[n])) << type << ", " << n;
                    else
                        ASSERT_EQ(o[n], wanted) << type << ", " << n;
                }
            }
    }
}

// Any bytes: NaN, infinities and subnormal scales among them.
TEST(Compressed, gathered_rows_are_widened_exactly_or_moved_as_they_are) {
    for_cases(40, [](Random& random) {
        for (const FoveaDtype type : quantized_types()) {
            FoveaGatherDesc d{};
            d.struct_size = sizeof d;
            d.x_type = type, d.y_type = random.chance(0.5) ? FOVEA_F32 : type;
            d.batch = 1, d.heads = 2, d.len = 3, d.capacity = 5;
            d.dim = 32 * (1 + uint32_t(random.below(9)));
            const FoveaPlanInfo info = plan_of(foveaPlanGather, d, cpu_device(1)).info();
            Buffers buffers;
            buffers[FOVEA_BIND_Y].resize(info.binding_bytes[FOVEA_BIND_Y]);
            Bytes& x = buffers[FOVEA_BIND_X];
            x.resize(info.binding_bytes[FOVEA_BIND_X]);
            for (std::byte& b : x) b = std::byte(random.below(256));
            const int32_t rows[3] = {int32_t(random.below(5)), -1, int32_t(random.below(5))};
            buffers[FOVEA_BIND_POSITIONS].resize(sizeof rows);
            memcpy(buffers[FOVEA_BIND_POSITIONS].data(), rows, sizeof rows);
            for (const uint32_t target : runnable_targets()) {
                SCOPED_TRACE(foveaCpuTargetName(target));
                const Bytes y = run(plan_of(foveaPlanGather, d, cpu_device(1, target)), buffers, 1);
                for (int64_t flat = 0; flat < 6; ++flat) {
                    const int64_t from = (flat / 3 * 5 + rows[flat % 3]) * d.dim;
                    for (int64_t n = 0; n < d.dim; ++n) {
                        const float got = load_number(y.data(), d.y_type, flat * d.dim + n);
                        const float wanted = rows[flat % 3] < 0 ? 0 : load_number(x.data(), type, from + n);
                        if (std::isnan(wanted))
                            ASSERT_TRUE(std::isnan(got)) << type << ", " << n;
                        else
                            ASSERT_EQ(got, wanted) << type << ", " << n;
                    }
                }
            }
        }
    });
}

}  // namespace
}  // namespace fovea::test
