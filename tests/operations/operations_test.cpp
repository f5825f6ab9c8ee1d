// Rope, linear, append, gather and merge against the float64 reference, on every CPU target, or on the
// available Vulkan device or WebGPU: seeded random descriptions; every byte of the output is checked,
// including gaps and margins.
//
//   fovea_test_operations [--on RUNNER] [--cases N] [--gtest_...]
//   FOVEA_TEST_SEED=n   runs case n alone
#include "operations/operation_runner.hpp"
#include "operations/operation_verdict.hpp"
#include "problem/rotation.hpp"
#include "reference/tolerance.hpp"
#include "support/number_types.hpp"
#include "support/random_operation.hpp"
#include "support/wall.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

namespace fovea::test {
namespace {

uint64_t& cases_asked_for() {  // by --cases; 0: the usual number
    static uint64_t count = 0;
    return count;
}
// A driver compiles a pipeline for most of the cases.
uint64_t case_count() {
    if (cases_asked_for()) return cases_asked_for();
    return runners().front()->name().starts_with("cpu") ? 400 : 60;
}

template <class Desc>
using Create = FoveaResult (*)(const FoveaDeviceProperties*, const Desc*, const FoveaHostAllocator*,
                               FoveaPlan*, FoveaDiag*);

template <class Desc>
Result<Plan> make_plan(Create<Desc> create, const FoveaDeviceProperties& properties, const Desc& desc) {
    FoveaPlan handle = nullptr;
    Diag diag;
    if (create(&properties, &desc, nullptr, &handle, &diag) != FOVEA_OK) return diag.error();
    return Plan(handle);
}

struct Types {
    FoveaDtype x, w, y;
    FoveaDtype of(uint32_t binding) const {
        return binding == FOVEA_BIND_X ? x : binding == FOVEA_BIND_WEIGHT ? w : FOVEA_F32;
    }
};

bool is_integer(uint32_t binding) {
    return binding == FOVEA_BIND_POSITIONS || binding == FOVEA_BIND_SEQUENCES ||
           binding == FOVEA_BIND_BLOCK_TABLE;
}

// Random finite values, bytes of any value in compressed caches; integers stay small and include some
// that must be clamped or rejected by the kernels.
Bytes random_contents(Random& random, uint32_t binding, FoveaDtype type, uint64_t bytes) {
    Bytes out(bytes, kUntouched);
    if (is_integer(binding)) {
        // The pages of a block table are distinct, as far as 24 reach: two rows may not go to one place.
        const uint64_t first = random.below(24);
        const bool distinct = binding == FOVEA_BIND_BLOCK_TABLE;
        for (uint64_t n = 0; n + 4 <= bytes; n += 4) {
            const int32_t value = int32_t(distinct ? (first + 7 * (n / 4)) % 24 : random.below(24)) - 2;
            memcpy(&out[n], &value, 4);
        }
        return out;
    }
    if (is_compressed(type) && binding != FOVEA_BIND_WEIGHT) {
        for (std::byte& byte : out) byte = std::byte(random.below(256));
        return out;
    }
    const StorageBlock block = storage_block(type);
    if (is_quantized(type)) {
        for (std::byte& byte : out) byte = std::byte(random.below(256));
        const uint64_t first = type == FOVEA_Q6_K ? 208 : 0, last = first || type == FOVEA_Q5_0 ? first : 2;
        for (uint64_t at = 0; at < bytes / block.bytes * block.bytes; at += block.bytes)
            for (uint64_t scale = first; scale <= last; scale += 2) {
                const uint16_t half = float_to_half(float(random.below(2001)) / 20000.0f - 0.05f);
                memcpy(&out[at + scale], &half, 2);
            }
        return out;
    }
    std::vector<float> numbers(bytes / block.bytes * block.numbers);
    for (float& number : numbers) number = float(random.below(4001)) / 1000.0f - 2.0f;
    store_numbers(out.data(), type, 0, numbers.data(), numbers.size());
    return out;
}

bool is_output(uint32_t binding) { return binding == FOVEA_BIND_Y || binding == FOVEA_BIND_LSE; }

Buffers random_inputs(Random& random, const FoveaPlanInfo& info, const Types& types) {
    Buffers buffers;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.binding_mask >> i & 1)) continue;
        if (is_output(i))
            buffers[i].assign(info.binding_bytes[i], kUntouched);
        else
            buffers[i] = random_contents(random, i, types.of(i), info.binding_bytes[i]);
    }
    return buffers;
}

// Sign bits cleared.
Buffers absolute(Buffers buffers, const Types& types) {
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (is_integer(i) || i == FOVEA_BIND_Y) continue;
        const size_t size = dtype_bytes(types.of(i));
        for (size_t n = size - 1; n < buffers[i].size(); n += size) buffers[i][n] &= std::byte{0x7f};
    }
    return buffers;
}

// The numbers of a binding rounded to float16, kept as they are stored.
void round_to_half(Bytes& bytes, FoveaDtype type) {
    for (size_t n = 0; type == FOVEA_F32 && n + 4 <= bytes.size(); n += 4) {
        float value = 0;
        memcpy(&value, &bytes[n], 4);
        value = half_to_float(float_to_half(value));
        memcpy(&bytes[n], &value, 4);
    }
}

// Returns the same call with the dequantized values of blocks of weights.
FoveaRopeDesc with_plain_weights(const FoveaRopeDesc& d, Buffers&, Types&) { return d; }
FoveaLinearDesc with_plain_weights(FoveaLinearDesc d, Buffers& inputs, Types& types) {
    const StorageBlock block = storage_block(d.w_type);
    if (block.numbers == 1) return d;
    Bytes& w = inputs[FOVEA_BIND_WEIGHT];
    std::vector<float> numbers(w.size() / block.bytes * block.numbers);
    for (size_t n = 0; n < numbers.size(); ++n) numbers[n] = element_of(w, d.w_type, int64_t(n));
    w.resize(4 * numbers.size());
    memcpy(w.data(), numbers.data(), w.size());
    d.w_type = types.w = FOVEA_F32;
    return d;
}

std::vector<int64_t> rows_of(const FoveaRopeDesc& d) {
    FoveaStrides s = d.y_strides;
    if (s.batch == 0 && s.head == 0 && s.row == 0) {
        const auto row = int64_t(d.dim), head = int64_t(d.len) * row;
        s = {int64_t(d.heads) * head, head, row};
    }
    std::vector<int64_t> rows;
    for (int64_t b = 0; b < d.batch; ++b)
        for (int64_t h = 0; h < d.heads; ++h)
            for (int64_t l = 0; l < int64_t(d.len); ++l) rows.push_back(b * s.batch + h * s.head + l * s.row);
    return rows;
}
std::vector<int64_t> rows_of(const FoveaLinearDesc& d) {
    std::vector<int64_t> rows;
    for (int64_t n = 0; n < int64_t(d.rows); ++n)
        rows.push_back(n * (d.y_row_stride ? d.y_row_stride : int64_t(d.n_out)));
    return rows;
}
FoveaPrecision precision_of(const FoveaRopeDesc&) { return FOVEA_PRECISION_F32; }
FoveaPrecision precision_of(const FoveaLinearDesc& d) { return d.precision; }
uint32_t columns_of(const FoveaRopeDesc& d) { return d.dim; }
uint32_t columns_of(const FoveaLinearDesc& d) { return d.n_out; }

// Calls body(n, random) for each case, or for the one that FOVEA_TEST_SEED names.
template <class Body>
void for_cases(const char* test, Body body) {
    const char* only = getenv("FOVEA_TEST_SEED");
    for (uint64_t n = only ? strtoull(only, nullptr, 0) : 0; n < case_count(); ++n) {
        const Running running("FOVEA_TEST_SEED=" + std::to_string(n) + " fovea_test_operations");
        SCOPED_TRACE("replay: FOVEA_TEST_SEED=" + std::to_string(n) +
                     " fovea_test_operations --gtest_filter=Operations." + test);
        Random random(n);
        body(random);
        if (only || testing::Test::HasFailure()) return;
    }
}

// The computation in plain loops: on the CPU, in one arithmetic or the other.
template <class Desc>
Bytes in_plain_loops(Create<Desc> create, Desc desc, FoveaKernel kernel, const Buffers& inputs) {
    std::string error;
    static const auto cpu = make_operation_runner("cpu@scalar", error);
    desc.kernel = kernel;
    desc.y_type = FOVEA_F32;
    const Result<Plan> plan = make_plan(create, cpu->properties(), desc);
    if (!plan) {
        ADD_FAILURE() << plan.error().text;
        return {};
    }
    Buffers buffers = inputs;
    buffers[FOVEA_BIND_Y].assign(plan->info().binding_bytes[FOVEA_BIND_Y], kUntouched);
    Result<Buffers> after = cpu->run(*plan, buffers, {});
    if (!after) {
        ADD_FAILURE() << after.error().text;
        return {};
    }
    return std::move((*after)[FOVEA_BIND_Y]);
}

void expect_inputs_kept(const Buffers& before, const Buffers& after) {
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (is_output(i)) continue;
        EXPECT_TRUE(after[i] == before[i]) << "binding " << i << " is an input and was written";
    }
}

int& matrix_plans() {
    static int count = 0;
    return count;
}

// Runs the description on every runner; `accept` sees each one's buffers. Inputs are drawn where Y is empty.
template <class Desc, class Accept>
void run_everywhere(Random& random, Create<Desc> create, const Desc& desc, const Types& types,
                    Buffers& inputs, Accept accept) {
    const uint64_t shuffle = random.next();
    for (const auto& runner : runners()) {
        SCOPED_TRACE("on " + runner->name());
        const Result<Plan> plan = make_plan(create, runner->properties(), desc);
        ASSERT_TRUE(plan) << plan.error().text;
        if (std::string(plan->info().reason).starts_with("linear on cooperative matrices")) ++matrix_plans();
        if (inputs[FOVEA_BIND_Y].empty()) inputs = random_inputs(random, plan->info(), types);
        const OperationRun how{shuffle, 1 + uint32_t(shuffle % 3), false};
        const Result<Buffers> after = runner->run(*plan, inputs, how);
        ASSERT_TRUE(after) << after.error().field << ": " << after.error().text;
        expect_inputs_kept(inputs, *after);
        accept(*runner, *after);
    }
}

std::map<std::string, double>& worst_shares() {
    static std::map<std::string, double> shares;
    return shares;
}

// Y in float64 from rounded X, rounded W and both, where the description lets a kernel round them.
template <class Desc>
std::vector<Bytes> from_rounded_factors(Create<Desc> create, const Desc& desc, const Types& types,
                                        const Buffers& inputs) {
    std::vector<Bytes> results;
    if (precision_of(desc) != FOVEA_PRECISION_F16_INPUTS) return results;
    for (const uint32_t factors : {1u, 2u, 3u}) {
        Buffers rounded = inputs;
        if (factors & 1) round_to_half(rounded[FOVEA_BIND_X], types.x);
        if (factors & 2) round_to_half(rounded[FOVEA_BIND_WEIGHT], types.w);
        results.push_back(in_plain_loops(create, desc, FOVEA_KERNEL_REFERENCE, rounded));
    }
    return results;
}

template <class Desc>
void check_by_rule(Random& random, Create<Desc> create, const Desc& desc, const Types& types) {
    Buffers inputs;
    Bytes exact, plain, magnitudes;
    std::vector<Bytes> rounded;
    run_everywhere(random, create, desc, types, inputs, [&](OperationRunner& runner, const Buffers& after) {
        const Bytes& got = after[FOVEA_BIND_Y];
        if (exact.empty()) {
            exact = in_plain_loops(create, desc, FOVEA_KERNEL_REFERENCE, inputs);
            plain = in_plain_loops(create, desc, FOVEA_KERNEL_PLAIN, inputs);
            Buffers widened = inputs;
            Types of_widened = types;
            const Desc plain_desc = with_plain_weights(desc, widened, of_widened);
            magnitudes =
                in_plain_loops(create, plain_desc, FOVEA_KERNEL_REFERENCE, absolute(widened, of_widened));
            rounded = from_rounded_factors(create, plain_desc, of_widened, widened);
        }
        const OperationResults results{&exact,      &plain,  &magnitudes,   &got,
                                       desc.y_type, rounded, rows_of(desc), columns_of(desc)};
        EXPECT_EQ(judge_operation(results, worst_shares()[runner.name()]), "");
    });
}

void print_shares(const char* operation) {
    for (const auto& [name, share] : worst_shares())
        printf("%s on %s: worst row at %.0f%% of its tolerance\n", operation, name.c_str(), 100 * share);
    worst_shares().clear();
}

TEST(Operations, rope) {
    for_cases("rope", [](Random& random) {
        FoveaRopeDesc d{};
        d.struct_size = sizeof d;
        d.x_type = random_type(random), d.y_type = random_type(random);
        d.batch = 1 + uint32_t(random.below(3)), d.heads = 1 + uint32_t(random.below(4));
        d.dim = 1 + uint32_t(random.below(40)), d.len = 1 + random.below(30);
        d.rotary_dim = d.dim < 2 ? 0 : 2 * (1 + uint32_t(random.below(d.dim / 2)));
        if (d.dim % 2 == 1 && d.rotary_dim == 0) d.dim = 2;
        d.interleaved = uint32_t(random.below(2));
        d.table_rows = random.chance(0.5) ? 1 + random.below(20) : 0;
        d.x_strides = random_strides(random, d.heads, d.len, d.dim);
        d.y_strides = random_strides(random, d.heads, d.len, d.dim);
        check_by_rule(random, foveaPlanRope, d, {d.x_type, FOVEA_F32, d.y_type});
    });
    print_shares("rope");
}

TEST(Operations, linear) {
    for_cases("linear", [](Random& random) {
        FoveaLinearDesc d{};
        d.struct_size = sizeof d;
        d.x_type = random_type(random), d.w_type = random_type(random), d.y_type = random_type(random);
        d.n_in = 1 + uint32_t(random.below(random.chance(0.5) ? 20 : 150));
        d.n_out = 1 + uint32_t(random.below(random.chance(0.5) ? 20 : 300));
        d.rows = 1 + random.below(random.chance(0.5) ? 4 : 100);
        // Deeper and longer than any kernel takes at a time.
        if (random.chance(0.1)) d.n_in = 200 + uint32_t(random.below(900)), d.n_out = 1 + d.n_out % 100;
        if (random.chance(0.1)) d.rows = 400 + random.below(800), d.n_out = 1 + d.n_out % 30;
        d.has_bias = uint32_t(random.below(2)), d.weight_is_in_out = uint32_t(random.below(2));
        const auto stride = [&](uint64_t columns) {
            return random.chance(0.5) ? 0 : int64_t(columns + random.below(9));
        };
        d.x_row_stride = stride(d.n_in), d.y_row_stride = stride(d.n_out);
        d.w_row_stride = stride(d.weight_is_in_out ? d.n_out : d.n_in);
        if (random.chance(0.3)) {
            d.w_type = random_block_type(random);
            const uint32_t block = storage_block(d.w_type).numbers;
            d.n_in = (d.n_in + block - 1) / block * block, d.weight_is_in_out = 0;
            d.x_row_stride = stride(d.n_in);
            d.w_row_stride = random.chance(0.5) ? 0 : int64_t(d.n_in + block * random.below(3));
        }
        if (random.chance(0.5)) d.precision = FOVEA_PRECISION_F16_INPUTS;
        check_by_rule(random, foveaPlanLinear, d, {d.x_type, d.w_type, d.y_type});
    });
    print_shares("linear");
    const OperationRunner& runner = *runners().front();
    const bool has_matrices = (runner.properties().features & FOVEA_FEATURE_COOPMAT) != 0;
    printf("linear on %s: %d plans on cooperative matrices\n", runner.name().c_str(), matrix_plans());
    if (runner.name() == "vulkan@discrete" && has_matrices && !getenv("FOVEA_TEST_SEED")) {
        EXPECT_GT(matrix_plans(), 5);
    }
}

// Rows of the unit matrix times W are W itself: what every kernel makes of its blocks, bit for bit.
TEST(Operations, linear_widens_blocks_exactly) {
    for_cases("linear_widens_blocks_exactly", [](Random& random) {
        FoveaLinearDesc d = foveaLinearDesc();
        d.w_type = random_block_type(random);
        d.n_in = storage_block(d.w_type).numbers * (1 + uint32_t(random.below(2)));
        d.n_out = 1 + uint32_t(random.below(6)), d.rows = d.n_in;
        Buffers inputs;
        inputs[FOVEA_BIND_X].resize(size_t{4} * d.rows * d.n_in);
        for (uint32_t n = 0; n < d.n_in; ++n) {
            const float one = 1;
            memcpy(&inputs[FOVEA_BIND_X][size_t{4} * n * (d.n_in + 1)], &one, 4);
        }
        const Types types{FOVEA_F32, d.w_type, FOVEA_F32};
        const auto bytes = uint64_t(stored_bytes(d.w_type, int64_t(d.n_out) * d.n_in));
        inputs[FOVEA_BIND_WEIGHT] = random_contents(random, FOVEA_BIND_WEIGHT, d.w_type, (bytes + 3) / 4 * 4);
        inputs[FOVEA_BIND_Y].assign(size_t{4} * d.rows * d.n_out, kUntouched);
        run_everywhere(
            random, foveaPlanLinear, d, types, inputs, [&](OperationRunner&, const Buffers& after) {
                for (int64_t n = 0; n < int64_t(d.n_out); ++n)
                    for (int64_t k = 0; k < int64_t(d.n_in); ++k)
                        ASSERT_EQ(element_of(after[FOVEA_BIND_Y], FOVEA_F32, k * int64_t(d.n_out) + n),
                                  element_of(inputs[FOVEA_BIND_WEIGHT], d.w_type, n * int64_t(d.n_in) + k))
                            << "type " << d.w_type << ", output " << n << ", input " << k;
            });
    });
}

// A kernel reads past the last input, in fours; an infinite element there must not be used, because zero
// times it is NaN.
TEST(Operations, linear_with_an_infinite_last_input) {
    for (const uint32_t n_in : {5u, 6u, 7u})
        for (const uint32_t in_out : {0u, 1u})
            for (const uint32_t infinite : {uint32_t{FOVEA_BIND_X}, uint32_t{FOVEA_BIND_WEIGHT}}) {
                FoveaLinearDesc d = foveaLinearDesc();
                d.n_in = n_in, d.n_out = 9, d.rows = 3, d.weight_is_in_out = in_out;
                const uint32_t others = infinite == FOVEA_BIND_X ? d.rows : d.n_out;
                const bool rows = infinite == FOVEA_BIND_X || !in_out;  // inputs of one output are adjacent
                for (const auto& runner : runners()) {
                    SCOPED_TRACE(runner->name() + ", " + std::to_string(n_in) + " inputs");
                    const Result<Plan> plan = make_plan(foveaPlanLinear, runner->properties(), d);
                    ASSERT_TRUE(plan) << plan.error().text;
                    Buffers buffers;
                    for (const uint32_t i : {FOVEA_BIND_X, FOVEA_BIND_WEIGHT, FOVEA_BIND_Y}) {
                        buffers[i].resize(plan->info().binding_bytes[i]);
                        for (size_t n = 0; n < buffers[i].size() / 4; ++n)
                            store_number(buffers[i].data(), FOVEA_F32, int64_t(n), 1);
                    }
                    for (uint32_t n = 0; n < others; ++n)
                        store_number(buffers[infinite].data(), FOVEA_F32,
                                     rows ? int64_t(n + 1) * n_in - 1 : int64_t(n_in - 1) * d.n_out + n,
                                     -INFINITY);
                    const Result<Buffers> after = runner->run(*plan, buffers, {});
                    ASSERT_TRUE(after) << after.error().text;
                    for (int64_t n = 0; n < int64_t(d.rows * d.n_out); ++n)
                        EXPECT_EQ(element_of((*after)[FOVEA_BIND_Y], FOVEA_F32, n), -INFINITY) << n;
                }
            }
}

// Element of the cache that takes new row l of (b, h), -1 where there is none; written from fovea.h.
int64_t cache_element(const FoveaAppendDesc& d, const Buffers& inputs, int64_t b, int64_t h, int64_t l) {
    FoveaStrides s = d.y_strides;
    if (s.batch == 0 && s.head == 0 && s.row == 0) {
        const auto row = int64_t(d.dim), head = int64_t(d.page_size ? d.page_size : d.capacity) * row;
        s = {int64_t(d.heads) * head, head, row};
    }
    auto held = int64_t(d.first_row);
    if (d.has_sequences) {
        FoveaSequence entry;
        memcpy(&entry, &inputs[FOVEA_BIND_SEQUENCES][size_t(b) * sizeof entry], sizeof entry);
        held = std::clamp<int64_t>(entry.kv_length, 0, int64_t(d.capacity));
    }
    const int64_t row = held + l;
    if (row >= int64_t(d.capacity)) return -1;
    if (d.page_size == 0) return b * s.batch + h * s.head + row * s.row;
    int32_t page = 0;
    const auto entry = size_t(b) * d.block_table_pages + size_t(row) / d.page_size;
    memcpy(&page, &inputs[FOVEA_BIND_BLOCK_TABLE][entry * 4], 4);
    if (page < 0 || page >= int64_t(d.page_count)) return -1;
    return page * s.batch + h * s.head + row % d.page_size * s.row;
}

// Fills all magnitudes, a few of them infinite or NaN, which blocks and 8-bit floats must distinguish.
void fill_wide_numbers(Random& random, Bytes& x, FoveaDtype type) {
    if (is_compressed(type)) return;
    const bool narrow = random.chance(0.5);
    for (uint64_t n = 0; n < x.size() / dtype_bytes(type); ++n) {
        const auto exponent = int(random.between(narrow ? -6 : -60, narrow ? 6 : 60));
        float value = std::ldexp(float(random.uniform(-2, 2)), exponent);
        if (random.chance(0.1)) value = 0;
        if (random.chance(0.003)) value = random.pick<float>({NAN, INFINITY, -INFINITY, FLT_MAX});
        store_number(x.data(), type, int64_t(n), value);
    }
}

// Row `from` of X to row `to` of Y; from -1: zeros.
template <class Desc>
void move_row(const Desc& d, const Bytes& x, int64_t from, Bytes& y, int64_t to) {
    const auto bytes = size_t(stored_bytes(d.y_type, d.dim)), first = size_t(stored_bytes(d.y_type, to));
    if (from < 0) {
        std::fill_n(y.begin() + ptrdiff_t(first), bytes, std::byte{0});
    } else if (d.x_type == d.y_type) {
        std::copy_n(x.begin() + ptrdiff_t(stored_bytes(d.x_type, from)), bytes, y.begin() + ptrdiff_t(first));
    } else {
        std::vector<float> row(d.dim);
        for (int64_t n = 0; n < d.dim; ++n) row[size_t(n)] = element_of(x, d.x_type, from + n);
        if constexpr (requires { d.rotate; }) rotate_row(row.data(), d.rotate ? row.size() : 0);
        store_numbers(y.data(), d.y_type, to, row.data(), d.dim);
    }
}

// The same bits, but that a NaN is one whatever its sign and payload. Blocks have one NaN.
::testing::AssertionResult same_cache(const Bytes& wanted, const Bytes& got, FoveaDtype type) {
    if (wanted.size() != got.size()) return ::testing::AssertionFailure() << "sizes differ";
    const StorageBlock block = storage_block(type);
    for (size_t at = 0; at < got.size(); at += block.bytes) {
        const size_t size = std::min<size_t>(block.bytes, got.size() - at);
        if (memcmp(&got[at], &wanted[at], size) == 0) continue;
        const auto n = int64_t(at / block.bytes * block.numbers);
        if (size < block.bytes) return ::testing::AssertionFailure() << "behind number " << n;
        const float a = element_of(wanted, type, n), b = element_of(got, type, n);
        if (block.numbers == 1 && std::isnan(a) && std::isnan(b)) continue;
        return ::testing::AssertionFailure()
               << "number " << n << " of type " << type << " is " << b << ", not " << a;
    }
    return ::testing::AssertionSuccess();
}

// Returns the expected Y.
Bytes appended(const FoveaAppendDesc& d, const Buffers& inputs) {
    FoveaStrides s = d.x_strides;
    if (s.batch == 0 && s.head == 0 && s.row == 0) {
        const auto row = int64_t(d.dim), head = int64_t(d.len) * row;
        s = {int64_t(d.heads) * head, head, row};
    }
    Bytes y = inputs[FOVEA_BIND_Y];
    for (int64_t b = 0; b < d.batch; ++b)
        for (int64_t h = 0; h < d.heads; ++h)
            for (int64_t l = 0; l < int64_t(d.len); ++l) {
                const int64_t to = cache_element(d, inputs, b, h, l);
                if (to >= 0) move_row(d, inputs[FOVEA_BIND_X], b * s.batch + h * s.head + l * s.row, y, to);
            }
    return y;
}

// Inputs of append and gather, drawn for the first runner: the others ask for no more bytes.
template <class Desc>
Buffers cache_inputs(Random& random, Create<Desc> create, const Desc& d) {
    const Result<Plan> plan = make_plan(create, runners().front()->properties(), d);
    EXPECT_TRUE(plan) << plan.error().text;
    if (!plan) return {};
    Buffers inputs = random_inputs(random, plan->info(), {d.x_type, FOVEA_F32, d.y_type});
    fill_wide_numbers(random, inputs[FOVEA_BIND_X], d.x_type);
    return inputs;
}

TEST(Operations, append) {
    for_cases("append", [](Random& random) {
        const FoveaAppendDesc d = random_append(random, 20);
        Buffers inputs = cache_inputs(random, foveaPlanAppend, d);
        const Bytes wanted = appended(d, inputs);
        run_everywhere(random, foveaPlanAppend, d, {}, inputs, [&](OperationRunner&, const Buffers& after) {
            EXPECT_TRUE(same_cache(wanted, after[FOVEA_BIND_Y], d.y_type)) << "from type " << d.x_type;
        });
    });
}

// Returns the expected Y after a gather; written from fovea.h.
Bytes gathered(const FoveaGatherDesc& d, const Buffers& inputs) {
    const auto filled = [&](FoveaStrides s, uint64_t rows) {
        const auto row = int64_t(d.dim), head = int64_t(rows) * row;
        return s.batch == 0 && s.head == 0 && s.row == 0 ? FoveaStrides{int64_t(d.heads) * head, head, row}
                                                         : s;
    };
    const FoveaStrides x = filled(d.x_strides, d.page_size ? d.page_size : d.capacity),
                       y = filled(d.y_strides, d.len);
    const auto number = [&](uint32_t binding, uint64_t index) {
        int32_t value = 0;
        memcpy(&value, &inputs[binding][index * 4], 4);
        return int64_t(value);
    };
    const uint64_t lists = std::max(1u, d.position_heads);
    Bytes out = inputs[FOVEA_BIND_Y];
    for (uint64_t b = 0; b < d.batch; ++b)
        for (uint64_t h = 0; h < d.heads; ++h)
            for (uint64_t l = 0; l < d.len; ++l) {
                const int64_t row =
                    number(FOVEA_BIND_POSITIONS, (b * lists + (lists > 1 ? h : 0)) * d.len + l);
                bool is_row = row >= 0 && row < int64_t(d.capacity);
                int64_t from = int64_t(b) * x.batch + int64_t(h) * x.head + row * x.row;
                if (is_row && d.page_size) {
                    const int64_t page =
                        number(FOVEA_BIND_BLOCK_TABLE, b * d.block_table_pages + uint64_t(row) / d.page_size);
                    is_row = page >= 0 && page < int64_t(d.page_count);
                    from = page * x.batch + int64_t(h) * x.head + row % d.page_size * x.row;
                }
                const int64_t to = int64_t(b) * y.batch + int64_t(h) * y.head + int64_t(l) * y.row;
                move_row(d, inputs[FOVEA_BIND_X], is_row ? from : -1, out, to);
            }
    return out;
}

TEST(Operations, gather) {
    for_cases("gather", [](Random& random) {
        const FoveaGatherDesc d = random_gather(random, 20);
        Buffers inputs = cache_inputs(random, foveaPlanGather, d);
        const Bytes wanted = gathered(d, inputs);
        run_everywhere(random, foveaPlanGather, d, {}, inputs, [&](OperationRunner&, const Buffers& after) {
            EXPECT_TRUE(same_cache(wanted, after[FOVEA_BIND_Y], d.y_type)) << "from type " << d.x_type;
        });
    });
}

FoveaMergeDesc random_merge(Random& random) {
    FoveaMergeDesc d{};
    d.struct_size = sizeof d;
    d.x_type = random_type(random), d.y_type = random_type(random);
    d.parts = 1 + uint32_t(random.below(random.chance(0.2) ? 70 : 9));
    d.batch = 1 + uint32_t(random.below(3)), d.heads = 1 + uint32_t(random.below(4));
    d.dim = 1 + uint32_t(random.below(random.chance(0.2) ? 200 : 20)), d.len = 1 + random.below(9);
    d.x_strides = random_strides(random, d.heads, d.len, d.dim);
    d.y_strides = random_strides(random, d.heads, d.len, d.dim);
    if (random.chance(0.5)) {
        const Result<Plan> packed = make_plan(foveaPlanMerge, runners().front()->properties(), d);
        const uint64_t all = packed ? packed->info().tensor_bytes[FOVEA_BIND_X] : 0;
        d.x_part_stride = int64_t(all / d.parts / dtype_bytes(d.x_type) + random.below(9));
    }
    return d;
}

FoveaStrides packed_unless_given(const FoveaStrides& s, const FoveaMergeDesc& d) {
    if (s.batch || s.head || s.row) return s;
    const auto row = int64_t(d.dim), head = int64_t(d.len) * row;
    return {int64_t(d.heads) * head, head, row};
}

// Some parts saw nothing, and rows of theirs are NaN: nobody may look there. Others outweigh the rest by far.
void make_lse(Random& random, const FoveaMergeDesc& d, uint64_t part_elements, Buffers& inputs) {
    const uint64_t rows = uint64_t{d.batch} * d.heads * d.len;
    const FoveaStrides s = packed_unless_given(d.x_strides, d);
    const uint64_t size = dtype_bytes(d.x_type);
    const bool nothing_at_all = random.chance(0.1);
    for (uint64_t n = 0; n < rows * d.parts; ++n) {
        const bool empty = random.chance(0.25) || (nothing_at_all && n % rows == 0);
        const float spread = random.chance(0.1) ? 100.0f : 5.0f;
        const float lse = empty ? -INFINITY : spread * (float(random.below(2001)) / 1000.0f - 1.0f);
        memcpy(&inputs[FOVEA_BIND_PART_LSE][n * 4], &lse, 4);
        if (!empty) continue;
        const uint64_t part = n / rows, l = n % rows % d.len, bh = n % rows / d.len;
        const uint64_t first = part * part_elements + bh / d.heads * uint64_t(s.batch) +
                               bh % d.heads * uint64_t(s.head) + l * uint64_t(s.row);
        std::fill_n(inputs[FOVEA_BIND_X].begin() + ptrdiff_t(first * size), d.dim * size, kUntouched);
    }
}

// From the definition, not from the tree; what the tree's roundings may come to is told by the same sums.
void expect_merged(const FoveaMergeDesc& d, uint64_t part_elements, const Buffers& inputs,
                   const Buffers& after) {
    const auto rows = int64_t(d.batch) * d.heads * int64_t(d.len);
    const FoveaStrides x = packed_unless_given(d.x_strides, d), y = packed_unless_given(d.y_strides, d);
    std::vector<bool> in_a_row(after[FOVEA_BIND_Y].size());
    const int64_t y_size = dtype_bytes(d.y_type);
    for (int64_t n = 0; n < rows; ++n) {
        const int64_t l = n % int64_t(d.len), h = n / int64_t(d.len) % d.heads,
                      b = n / int64_t(d.len) / d.heads;
        double most = -INFINITY, least = INFINITY, sum = 0;
        std::vector<double> lse(d.parts);
        for (int64_t p = 0; p < d.parts; ++p) {
            lse[size_t(p)] = element_of(inputs[FOVEA_BIND_PART_LSE], FOVEA_F32, p * rows + n);
            most = std::max(most, lse[size_t(p)]);
            if (std::isfinite(lse[size_t(p)])) least = std::min(least, lse[size_t(p)]);
        }
        for (const double part : lse) sum += std::isfinite(part) ? std::exp(part - most) : 0;
        const double exact_lse = std::isfinite(most) ? most + std::log(sum) : most;
        const float got_lse = element_of(after[FOVEA_BIND_LSE], FOVEA_F32, n);
        const double unit = std::isfinite(most) ? 0x1p-24 * (16 + std::fabs(most) + (most - least)) : 0;
        if (!std::isfinite(most))
            EXPECT_EQ(got_lse, -INFINITY) << "row " << n;
        else
            EXPECT_NEAR(got_lse, exact_lse, 4 * unit) << "row " << n;
        for (int64_t c = 0; c < d.dim; ++c) {
            double exact = 0, magnitude = 0;
            for (int64_t p = 0; p < d.parts && std::isfinite(most); ++p) {
                if (!std::isfinite(lse[size_t(p)])) continue;
                const double o =
                    element_of(inputs[FOVEA_BIND_X], d.x_type,
                               p * int64_t(part_elements) + b * x.batch + h * x.head + l * x.row + c);
                exact += std::exp(lse[size_t(p)] - exact_lse) * o;
                magnitude += std::exp(lse[size_t(p)] - exact_lse) * std::fabs(o);
            }
            const int64_t at = b * y.batch + h * y.head + l * y.row + c;
            std::fill_n(in_a_row.begin() + at * y_size, y_size, true);
            const double rounding = reference::storing_error(d.y_type, std::fabs(exact));
            constexpr double kFlushed = 0x1p-125;  // subnormal terms, which drivers take for 0
            EXPECT_NEAR(element_of(after[FOVEA_BIND_Y], d.y_type, at), exact,
                        4 * unit * magnitude + rounding + kFlushed)
                << "row " << n << ", column " << c;
        }
        if (testing::Test::HasFailure()) return;
    }
    for (size_t n = 0; n < in_a_row.size(); ++n)
        ASSERT_TRUE(in_a_row[n] || after[FOVEA_BIND_Y][n] == kUntouched) << "byte " << n << " is of no row";
}

TEST(Operations, merge) {
    for_cases("merge", [](Random& random) {
        const FoveaMergeDesc d = random_merge(random);
        const Result<Plan> plan = make_plan(foveaPlanMerge, runners().front()->properties(), d);
        ASSERT_TRUE(plan) << plan.error().text;
        FoveaMergeDesc one = d;
        one.parts = 1;
        const Result<Plan> part = make_plan(foveaPlanMerge, runners().front()->properties(), one);
        ASSERT_TRUE(part);
        const uint64_t size = dtype_bytes(d.x_type);
        const uint64_t part_elements =
            d.x_part_stride ? uint64_t(d.x_part_stride) : part->info().tensor_bytes[FOVEA_BIND_X] / size;
        Buffers inputs = random_inputs(random, plan->info(), {d.x_type, FOVEA_F32, d.y_type});
        make_lse(random, d, part_elements, inputs);
        run_everywhere(
            random, foveaPlanMerge, d, {d.x_type, FOVEA_F32, d.y_type}, inputs,
            [&](OperationRunner&, const Buffers& after) { expect_merged(d, part_elements, inputs, after); });
    });
}

// The property that makes a merge safe to repeat: a fully masked part changes no bit, at any place.
TEST(Operations, a_part_without_keys_changes_no_bit) {
    FoveaMergeDesc d{};
    d.struct_size = sizeof d;
    d.batch = 1, d.heads = 2, d.dim = 19, d.len = 7;
    for (const auto& runner : runners()) {
        SCOPED_TRACE(runner->name());
        Random random(3);
        Buffers last;
        for (uint32_t part = 0; part < 5; ++part) {
            d.parts = 1;
            const Result<Plan> one = make_plan(foveaPlanMerge, runner->properties(), d);
            d.parts = 5;
            const Result<Plan> all = make_plan(foveaPlanMerge, runner->properties(), d);
            ASSERT_TRUE(one && all);
            if (part == 0) {
                last = random_inputs(random, one->info(), {FOVEA_F32, FOVEA_F32, FOVEA_F32});
                const float negative_zero = -0.0f;
                memcpy(&last[FOVEA_BIND_X][0], &negative_zero, 4);
            }
            const Bytes x = last[FOVEA_BIND_X], lse = last[FOVEA_BIND_PART_LSE];
            Buffers inputs = random_inputs(random, all->info(), {FOVEA_F32, FOVEA_F32, FOVEA_F32});
            std::fill(inputs[FOVEA_BIND_X].begin(), inputs[FOVEA_BIND_X].end(), kUntouched);
            for (size_t n = 0; n < inputs[FOVEA_BIND_PART_LSE].size(); n += 4) {
                const float nothing = -INFINITY;
                memcpy(&inputs[FOVEA_BIND_PART_LSE][n], &nothing, 4);
            }
            std::copy(x.begin(), x.end(), inputs[FOVEA_BIND_X].begin() + ptrdiff_t(part * x.size()));
            std::copy(lse.begin(), lse.end(),
                      inputs[FOVEA_BIND_PART_LSE].begin() + ptrdiff_t(part * lse.size()));
            const Result<Buffers> after = runner->run(*all, inputs, {});
            ASSERT_TRUE(after) << after.error().text;
            EXPECT_TRUE((*after)[FOVEA_BIND_Y] == x) << "part " << part;
            EXPECT_TRUE((*after)[FOVEA_BIND_LSE] == lse) << "part " << part;
        }
    }
}

// NaN or +inf in the lse of one part: the whole row is NaN, and only that row, whatever the others hold.
TEST(Operations, a_part_that_is_no_number_makes_its_row_none) {
    FoveaMergeDesc d{};
    d.struct_size = sizeof d;
    d.batch = 1, d.heads = 1, d.dim = 70, d.len = 3;
    const uint64_t row = d.dim;
    for (const auto& runner : runners()) {
        SCOPED_TRACE(runner->name());
        for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16, FOVEA_BF16})
            for (const uint32_t parts : {1u, 2u, 3u, 6u})
                for (const float bad : {NAN, INFINITY})
                    for (const float other : {0.5f, -INFINITY})
                        for (uint32_t part = 0; part < parts; ++part) {
                            d.parts = parts, d.y_type = type;
                            const Result<Plan> plan = make_plan(foveaPlanMerge, runner->properties(), d);
                            if (!plan && type != FOVEA_F32) continue;  // a device without 16-bit stores
                            ASSERT_TRUE(plan) << plan.error().text;
                            Random random(5);
                            Buffers inputs =
                                random_inputs(random, plan->info(), {FOVEA_F32, FOVEA_F32, type});
                            for (uint32_t n = 0; n < parts; ++n)
                                for (uint32_t i = 0; i < 3; ++i) {
                                    const float lse = i == 1 ? (n == part ? bad : other) : 0.25f * float(n);
                                    write_float(inputs[FOVEA_BIND_PART_LSE], FOVEA_F32, n * 3 + i, lse);
                                }
                            const Result<Buffers> after = runner->run(*plan, inputs, {});
                            ASSERT_TRUE(after) << after.error().text;
                            for (uint32_t i = 0; i < 3; ++i) {
                                const float lse = read_float((*after)[FOVEA_BIND_LSE], FOVEA_F32, i);
                                ASSERT_EQ(std::isnan(lse), i == 1) << parts << " parts, part " << part;
                                for (uint64_t n = 0; n < row; ++n)
                                    ASSERT_EQ(std::isnan(read_float((*after)[FOVEA_BIND_Y], type,
                                                                    int64_t(i * row + n))),
                                              i == 1)
                                        << parts << " parts, part " << part << ", lse " << bad << ", type "
                                        << type;
                            }
                        }
    }
}

// Calls that a device with few workgroups divides into slices. If rows end within a unit of its offsets, and
// in a cache, windows of neighboring slices overlap: without a barrier validation reports a write after a
// write.
TEST(Operations, slices_whose_windows_meet_have_a_barrier_between_them) {
    for (const auto& runner : runners()) {
        if (!runner->name().starts_with("vulkan")) continue;
        SCOPED_TRACE(runner->name());
        FoveaDeviceProperties few = runner->properties();
        std::fill_n(few.max_workgroup_count, 3, 4u);
        few.storage_offset_alignment = 256;  // the coarsest there is fits every device
        const auto expect_same = [&](auto create, const auto& d, bool meet) {
            const auto whole = make_plan(create, runner->properties(), d), cut = make_plan(create, few, d);
            ASSERT_TRUE(whole && cut);
            EXPECT_GE(cut->info().slice_count, 4u);
            EXPECT_EQ(cut->info().slices_share_workspace, meet ? 1u : 0u);
            Random random(9);
            const Buffers inputs = random_inputs(random, whole->info(), {d.x_type, FOVEA_F32, d.y_type});
            const Result<Buffers> a = runner->run(*whole, inputs, {}),
                                  b = runner->run(*cut, inputs, {77, 1, false});
            ASSERT_TRUE(a) << a.error().text;
            ASSERT_TRUE(b) << b.error().text;
            EXPECT_TRUE((*a)[FOVEA_BIND_Y] == (*b)[FOVEA_BIND_Y]);
            EXPECT_TRUE((*a)[FOVEA_BIND_LSE] == (*b)[FOVEA_BIND_LSE]);
        };
        for (const bool meet : {true, false}) {
            const uint32_t dim = meet ? 33 : 64;
            FoveaRopeDesc rope{};
            rope.struct_size = sizeof rope, rope.batch = rope.heads = 1, rope.len = 77;
            rope.dim = dim, rope.rotary_dim = 32;
            expect_same(foveaPlanRope, rope, meet);
            FoveaLinearDesc linear{};
            linear.struct_size = sizeof linear, linear.rows = 1031, linear.n_in = 5, linear.n_out = dim;
            linear.y_row_stride = dim;
            expect_same(foveaPlanLinear, linear, meet);
            FoveaGatherDesc gather{};
            gather.struct_size = sizeof gather, gather.batch = gather.heads = 1;
            gather.len = gather.capacity = 77, gather.dim = dim;
            expect_same(foveaPlanGather, gather, meet);
        }
        FoveaMergeDesc merge{};
        merge.struct_size = sizeof merge, merge.parts = 2, merge.batch = 2, merge.heads = 3;
        merge.len = 21, merge.dim = 64;  // the log-sum-exps' windows meet, although those of rows do not
        expect_same(foveaPlanMerge, merge, true);
        FoveaAppendDesc append{};
        append.struct_size = sizeof append, append.batch = append.heads = 1;
        append.len = 77, append.capacity = 90, append.dim = 33;
        expect_same(foveaPlanAppend, append, true);
    }
}

// y may be x: the same buffer, the same strides.
TEST(Operations, rope_in_place) {
    if (!runners().front()->name().starts_with("cpu") && !runners().front()->name().starts_with("vulkan"))
        GTEST_SKIP() << "WebGPU binds no buffer that a dispatch both reads and writes under two names";
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16, FOVEA_BF16}) {
        FoveaRopeDesc d{};
        d.struct_size = sizeof d;
        d.x_type = d.y_type = type;
        d.batch = 2, d.heads = 3, d.dim = 22, d.len = 17, d.rotary_dim = 14;
        for (const auto& runner : runners()) {
            const Result<Plan> plan = make_plan(foveaPlanRope, runner->properties(), d);
            ASSERT_TRUE(plan) << plan.error().text;
            Random random(7);
            const Buffers inputs = random_inputs(random, plan->info(), {type, FOVEA_F32, type});
            const Result<Buffers> apart = runner->run(*plan, inputs, {}),
                                  in_place = runner->run(*plan, inputs, {.in_place = true});
            ASSERT_TRUE(apart && in_place);
            EXPECT_TRUE((*in_place)[FOVEA_BIND_Y] == (*apart)[FOVEA_BIND_Y]) << runner->name();
        }
    }
}

// Converts every 16-bit float to float32, and float32 values at and next to every tie back: on each
// instruction set and driver the bits of fovea/half.hpp, except a NaN's payload and subnormal values, which a
// driver may flush to zero.
TEST(Operations, append_converts_every_number_of_16_bits_exactly) {
    struct Conversion {
        FoveaDtype from, to;
    };
    for (const Conversion& types : {Conversion{FOVEA_BF16, FOVEA_F32}, Conversion{FOVEA_F16, FOVEA_F32},
                                    Conversion{FOVEA_F32, FOVEA_BF16}, Conversion{FOVEA_F32, FOVEA_F16}}) {
        FoveaAppendDesc d{};
        d.struct_size = sizeof d;
        d.x_type = types.from, d.y_type = types.to;
        d.batch = d.heads = 1, d.dim = 1021;  // the ends of rows fall on every lane
        const FoveaDtype narrow_type = is_16_bit(types.from) ? types.from : types.to;
        std::vector<float> numbers;
        for (uint32_t bits = 0; bits < 65536; ++bits) {
            // Room for either type: the compiler does not know which is read.
            const uint16_t half[2] = {uint16_t(bits), 0};
            const float exact = load_number(half, narrow_type, 0);
            const uint32_t lost = narrow_type == FOVEA_BF16 ? 16u : 13u;
            const uint32_t up = 1u << (lost - 1u);
            for (const uint32_t more : {0u, up - 1u, up, up + 1u}) {
                if (more && (is_16_bit(types.from) || bits % 5))
                    continue;  // a fifth of them, of all exponents
                numbers.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(exact) + more));
            }
        }
        d.len = d.capacity = (numbers.size() + d.dim - 1) / d.dim;
        numbers.resize(size_t(d.len) * d.dim);
        for (const auto& runner : runners()) {
            SCOPED_TRACE(runner->name());
            const Result<Plan> plan = make_plan(foveaPlanAppend, runner->properties(), d);
            ASSERT_TRUE(plan) << plan.error().text;
            Random random(1);
            Buffers inputs = random_inputs(random, plan->info(), {d.x_type, FOVEA_F32, d.y_type});
            for (size_t n = 0; n < numbers.size(); ++n)
                store_number(inputs[FOVEA_BIND_X].data(), d.x_type, int64_t(n), numbers[n]);
            const Result<Buffers> after = runner->run(*plan, inputs, {});
            ASSERT_TRUE(after) << after.error().text;
            uint32_t wrong = 0;
            for (size_t n = 0; n < numbers.size() && wrong < 5; ++n) {
                float stored[1];
                store_number(stored, d.y_type, 0, numbers[n]);
                const float want = load_number(stored, d.y_type, 0),
                            got = element_of((*after)[FOVEA_BIND_Y], d.y_type, int64_t(n));
                if (std::isnan(want) ? std::isnan(got) : memcmp(&want, &got, 4) == 0) continue;
                const bool subnormal = std::fabs(numbers[n]) < 0x1p-126f;
                if (subnormal && got == 0 && runner->name().starts_with("vulkan")) continue;
                ADD_FAILURE() << ++wrong << ": " << numbers[n] << " became " << got << ", not " << want;
            }
        }
    }
}

// Rows of one type as those of another, by append, on each runner.
void expect_appended(FoveaDtype from, FoveaDtype to, const Bytes& x, uint64_t rows, uint32_t dim) {
    FoveaAppendDesc d{};
    d.struct_size = sizeof d;
    d.x_type = from, d.y_type = to;
    d.batch = d.heads = 1, d.dim = dim, d.len = d.capacity = rows;
    for (const auto& runner : runners()) {
        SCOPED_TRACE(runner->name());
        const Result<Plan> plan = make_plan(foveaPlanAppend, runner->properties(), d);
        ASSERT_TRUE(plan) << plan.error().text;
        Random random(1);
        Buffers inputs = random_inputs(random, plan->info(), {from, FOVEA_F32, to});
        std::copy(x.begin(), x.end(), inputs[FOVEA_BIND_X].begin());
        const Result<Buffers> after = runner->run(*plan, inputs, {});
        ASSERT_TRUE(after) << after.error().text;
        EXPECT_TRUE(same_cache(appended(d, inputs), (*after)[FOVEA_BIND_Y], to)) << "from type " << from;
    }
}

// Every code of 8-bit floats; blocks of any bytes, scales that are not finite among them.
TEST(Operations, append_widens_compressed_numbers_exactly) {
    for (const FoveaDtype type : quantized_types()) {
        constexpr uint64_t kRows = 301;
        Bytes x(size_t(stored_bytes(type, kRows * 96)));
        Random random(type);
        for (size_t n = 0; n < x.size(); ++n) x[n] = std::byte(n < 256 ? n : random.below(256));
        for (const FoveaDtype to : {FOVEA_F32, FOVEA_BF16}) expect_appended(type, to, x, kRows, 96);
    }
}

// 8-bit floats at and next to every tie; blocks with a scale that is not a normal float16, with values that
// are not finite or all zero, and blocks in which a scale that is off by one unit would give other values.
TEST(Operations, append_makes_the_processors_bits_of_compressed_numbers) {
    for (const FoveaDtype type : quantized_types()) {
        std::vector<float> numbers;
        const bool blocks = storage_block(type).numbers > 1;
        for (uint32_t code = 0; !blocks && code < 0x7f; ++code) {
            const auto byte = uint8_t(code), next = uint8_t(code + 1);
            const float middle = (compressed_number(&byte, type, 0) + compressed_number(&next, type, 0)) / 2;
            for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)})
                numbers.insert(numbers.end(), {x, -x});
        }
        for (const float x : {NAN, INFINITY, -INFINITY, FLT_MAX, 448.0f, 449.0f, 57344.0f, 1e-30f})
            if (!blocks) numbers.push_back(x);
        Random random(type);
        for (uint32_t n = 0; n < 4000; ++n) {
            const auto exponent = int(random.between(-118, 25));
            const double kind = random.uniform(0, 1);
            float row[32];
            for (float& x : row) x = std::ldexp(float(random.uniform(-1, 1)), exponent);
            // Quotients near their ties.
            if (kind < 0.5)
                for (float& x : row) x = std::ldexp(float(random.between(-254, 254)), exponent) / 254;
            if (kind < 0.05) std::fill_n(row, 32, kind < 0.02 ? 0.0f : -0.0f);
            if (kind > 0.97) row[random.below(32)] = random.pick<float>({NAN, INFINITY, -INFINITY, FLT_MAX});
            numbers.insert(numbers.end(), row, row + 32);
        }
        numbers.resize((numbers.size() + 95) / 96 * 96);
        Bytes x(numbers.size() * 4);
        memcpy(x.data(), numbers.data(), x.size());
        expect_appended(FOVEA_F32, type, x, numbers.size() / 96, 96);
    }
}

// The judge must be able to say no.
TEST(Operations, the_rule_rejects_one_wrong_element_and_a_write_between_rows) {
    const auto bytes_of = [](std::vector<float> values) {
        const auto* first = reinterpret_cast<const std::byte*>(values.data());
        return Bytes(first, first + values.size() * 4);
    };
    const float gap = std::nanf("");
    Bytes exact = bytes_of({1, 2, gap, 3, 4, gap}), magnitudes = exact;
    for (const size_t n : {2u, 5u}) std::fill_n(exact.begin() + ptrdiff_t(4 * n), 4, kUntouched);
    double share = 0;
    const auto judged = [&](const Bytes& got) {
        return judge_operation({&exact, &exact, &magnitudes, &got, FOVEA_F32, {}, {0, 3}, 2}, share);
    };
    EXPECT_EQ(judged(exact), "");
    Bytes wrong = exact;
    const float off = 4.00001f, hole = 0, bad = std::nanf("");
    memcpy(&wrong[16], &off, 4);
    EXPECT_NE(judged(wrong), "");
    memcpy(&wrong[16], &bad, 4);
    EXPECT_NE(judged(wrong), "");
    wrong = exact;
    memcpy(&wrong[8], &hole, 4);
    EXPECT_NE(judged(wrong), "");
}

// Just inside and just outside of the error of rounded operands, above and below its bound.
TEST(Operations, the_rule_allows_twice_what_rounded_factors_come_to) {
    const auto bytes_of = [](float value) {
        Bytes bytes(4);
        memcpy(bytes.data(), &value, 4);
        return bytes;
    };
    const Bytes exact = bytes_of(2), magnitudes = bytes_of(100);
    const double floor = 8 * 0x1p-24 * 100, bound = (2 + 0x1p-11) * 0x1p-11 * 100;
    double share = 0;
    for (const double rounding : {0.001, 0.01, 0.08}) {
        for (const double part : {0.999, 1.001}) {
            const double off = part * (floor + std::min(2 * rounding, bound));
            const Bytes got = bytes_of(float(2 - off));
            const OperationResults results{
                &exact, &exact, &magnitudes, &got, FOVEA_F32, {exact, bytes_of(float(2 + rounding))}, {0}, 1};
            EXPECT_EQ(judge_operation(results, share).empty(), part < 1) << rounding << ", " << part;
        }
    }
}

}  // namespace
}  // namespace fovea::test

int main(int argc, char** argv) {
    using namespace fovea::test;
    std::vector<std::string> names;
    for (int n = 1; n + 1 < argc; ++n) {
        if (strcmp(argv[n], "--on") == 0) names.push_back(argv[n + 1]);
        if (strcmp(argv[n], "--cases") == 0) cases_asked_for() = strtoull(argv[n + 1], nullptr, 0);
    }
    if (names.empty()) names = cpu_runner_names();
    for (const std::string& name : names) {
        std::string error;
        runners().push_back(make_operation_runner(name, error));
        if (runners().back()) continue;
        fprintf(stderr, "%s\n", error.c_str());
        return 2;
    }
    testing::InitGoogleTest(&argc, argv);
    const int result = RUN_ALL_TESTS();
    runners().clear();  // drivers do not survive their own static data
    return result;
}
