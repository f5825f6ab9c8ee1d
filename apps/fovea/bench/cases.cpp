#include "bench/cases.hpp"

#include "problem/problem.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace fovea::app {
namespace {

constexpr std::align_val_t kPage{4096};

// Numbers near normal: a sum of four uniforms with variance 1.
void fill_normal(void* to, FoveaDtype type, uint64_t bytes, uint32_t seed) {
    uint32_t state = seed * 2654435761u + 1;
    const auto draw = [&state] {
        float sum = -2;
        for (int n = 0; n < 4; ++n) {
            state = state * 1664525u + 1013904223u;
            sum += float(state >> 8) * 0x1p-24f;
        }
        return sum * 1.7320508f;
    };
    if (type == FOVEA_F32) {
        for (uint64_t n = 0; n < bytes / 4; ++n) static_cast<float*>(to)[n] = draw();
        return;
    }
    // Small elements of any bits: 8-bit floats far from the largest, a cache's blocks under one scale. The
    // scales of weight blocks are below 2.
    if (is_quantized(type)) {
        const StorageBlock block = storage_block(type);
        const bool blocks = block.numbers > 1 && is_compressed(type);
        auto* codes = static_cast<uint8_t*>(to);
        for (uint64_t n = 0; n < bytes; ++n) {
            state = state * 1664525u + 1013904223u;
            codes[n] = uint8_t(state >> 24) & (blocks ? 0xffu : 0xbfu);
        }
        const uint16_t scale = foveaFloatToHalf(type == FOVEA_Q8_0 ? 0.02f : 0.3f);
        for (uint64_t at = 0; blocks && at < bytes; at += block.bytes)
            memcpy(codes + at, &scale, sizeof scale);
        return;
    }
    for (uint64_t n = 0; n < bytes / 2; ++n) {
        const float x = draw();
        static_cast<uint16_t*>(to)[n] = type == FOVEA_F16 ? foveaFloatToHalf(x) : foveaFloatToBfloat(x);
    }
}

FoveaAttentionDesc describe(const BenchCase& c) {
    Attention call;
    call.batch(c.batch).heads(c.heads_q, c.heads_kv).lengths(c.len_q, c.len_kv).dims(c.dim).kernel(c.kernel);
    if (c.causal) call.causal(Align::top_left);
    if (c.backward) call.outputs(FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE);
    call.desc.k_type = call.desc.v_type = c.kv_type;
    if (c.one_type) call.desc.q_type = call.desc.o_type = c.kv_type;
    call.desc.precision = c.precision;
    return call.desc;
}

FoveaLinearDesc describe(const BenchLinear& l) {
    FoveaLinearDesc desc{};
    desc.struct_size = sizeof desc;
    desc.rows = l.rows, desc.n_in = l.n_in, desc.n_out = l.n_out;
    desc.w_type = l.w_type, desc.weight_is_in_out = l.weight_is_in_out, desc.has_bias = 1;
    if (l.rows == 1) desc.kernel = FOVEA_KERNEL_DECODE;
    return desc;
}

constexpr uint32_t kTileSide = 256;

// In the corner of the first keys and the last rows, where a causal call hides nothing.
FoveaMapTileDesc describe(const BenchTile& t, uint64_t len_q) {
    FoveaMapTileDesc desc{};
    desc.struct_size = sizeof desc;
    desc.head_count = 1;
    desc.row_count = desc.key_count = uint64_t{kTileSide} * t.cells;
    desc.first_row = len_q - desc.row_count;
    desc.width = desc.height = kTileSide;
    desc.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    desc.sampled = t.sampled ? 1 : 0;
    return desc;
}

Result<Plan> plan_case(const BenchCase& c, const FoveaDeviceProperties& properties) {
    if (c.backward) return plan_attention_backward(properties, describe(c), attention_backward());
    if (c.tile.cells) return plan_map_tile(properties, describe(c), describe(c.tile, c.len_q));
    if (c.linear.rows == 0) return plan_attention(properties, describe(c));
    return plan_linear(properties, describe(c.linear));
}

FoveaDtype type_of(const BenchCase& c, uint32_t binding) {
    if (binding == FOVEA_BIND_WEIGHT) return c.linear.w_type;
    const bool stored = binding == FOVEA_BIND_K || binding == FOVEA_BIND_V;
    return stored || (c.one_type && binding == FOVEA_BIND_Q) ? c.kv_type : FOVEA_F32;
}

BenchCase linear_case(const char* name, const char* what, const BenchLinear& linear) {
    BenchCase c{};
    c.name = name, c.what = what, c.unit = BenchUnit::peak, c.linear = linear;
    return c;
}

BenchCase tile_case(const char* name, const char* what, const BenchTile& tile) {
    BenchCase c{};
    c.name = name, c.what = what, c.unit = BenchUnit::peak;
    c.batch = c.heads_q = c.heads_kv = 1, c.len_q = c.len_kv = 131072, c.dim = 64, c.causal = true;
    c.tile = tile;
    return c;
}

// A case with every tensor in bfloat16.
BenchCase bf16_of(const BenchCase& call, const char* name, const char* what, FoveaPrecision precision) {
    BenchCase c = call;
    c.name = name, c.what = what, c.kv_type = FOVEA_BF16, c.one_type = true, c.precision = precision;
    return c;
}

BenchCase backward_of(const BenchCase& call, const char* name) {
    BenchCase c = call;
    c.name = name, c.backward = true;
    return c;
}

}  // namespace

std::vector<BenchCase> cpu_bench_cases() {
    const auto f32 = FOVEA_F32, f16 = FOVEA_F16;
    const auto any = FOVEA_KERNEL_AUTO;
    std::vector<BenchCase> cases{
        {"a-full", "12 heads, 1024, D 64", BenchUnit::peak, 1, 12, 12, 1024, 1024, 64, f32, false, any},
        {"a-causal", "12 heads, 1024, D 64, causal", BenchUnit::peak, 1, 12, 12, 1024, 1024, 64, f32, true,
         any},
        {"b-full", "8 heads, 4096, D 64", BenchUnit::peak, 1, 8, 8, 4096, 4096, 64, f32, false, any},
        {"b-causal", "8 heads, 4096, D 64, causal", BenchUnit::peak, 1, 8, 8, 4096, 4096, 64, f32, true, any},
        {"c-grouped", "32/8 heads, 2048, D 128, causal", BenchUnit::peak, 1, 32, 8, 2048, 2048, 128, f32,
         true, any},
        {"d-decode", "32/8 heads, 1 on 8192, D 128", BenchUnit::read, 1, 32, 8, 1, 8192, 128, f32, false,
         any},
        {"d-decode-f16", "the same, K and V in f16", BenchUnit::read, 1, 32, 8, 1, 8192, 128, f16, false,
         any},
        {"d-decode-bf16", "the same, K and V in bf16", BenchUnit::read, 1, 32, 8, 1, 8192, 128, FOVEA_BF16,
         false, any},
        {"d-decode-e4m3", "the same, in 8-bit floats", BenchUnit::read, 1, 32, 8, 1, 8192, 128, FOVEA_F8_E4M3,
         false, any},
        {"d-decode-e5m2", "the same, with more exponent", BenchUnit::read, 1, 32, 8, 1, 8192, 128,
         FOVEA_F8_E5M2, false, any},
        {"d-decode-q8_0", "the same, in q8_0", BenchUnit::read, 1, 32, 8, 1, 8192, 128, FOVEA_Q8_0, false,
         any},
        {"d-decode-q4_0", "the same, in q4_0", BenchUnit::read, 1, 32, 8, 1, 8192, 128, FOVEA_Q4_0, false,
         any},
        // More than any cache holds: at 8192 keys what is compressed is read from the third one.
        {"h-decode", "32/8 heads, 1 on 65536, D 128", BenchUnit::read, 1, 32, 8, 1, 65536, 128, f32, false,
         any},
        {"h-decode-f16", "the same, K and V in f16", BenchUnit::read, 1, 32, 8, 1, 65536, 128, f16, false,
         any},
        {"h-decode-bf16", "the same, K and V in bf16", BenchUnit::read, 1, 32, 8, 1, 65536, 128, FOVEA_BF16,
         false, any},
        {"h-decode-q8_0", "the same, in q8_0", BenchUnit::read, 1, 32, 8, 1, 65536, 128, FOVEA_Q8_0, false,
         any},
        {"h-decode-q4_0", "the same, in q4_0", BenchUnit::read, 1, 32, 8, 1, 65536, 128, FOVEA_Q4_0, false,
         any},
        {"e-tiny", "2 x 2 heads, 6 tokens, D 2", BenchUnit::call, 2, 2, 2, 6, 6, 2, f32, false, any},
        {"f-full", "1 head, 16384, D 64", BenchUnit::memory, 1, 1, 1, 16384, 16384, 64, f32, false, any},
        {"f-causal", "1 head, 16384, D 64, causal", BenchUnit::memory, 1, 1, 1, 16384, 16384, 64, f32, true,
         any},
    };
    cases.push_back(linear_case("l-gpt2", "linear, 1024 x 768 x 2304, bias", {1024, 768, 2304, f32, true}));
    cases.push_back(linear_case("l-out-in", "the same, weight [out, in]", {1024, 768, 2304, f32, false}));
    cases.push_back(linear_case("l-f16", "the same, weight in f16", {1024, 768, 2304, f16, false}));
    cases.push_back(linear_case("l-wide", "linear, 512 x 4096 x 4096", {512, 4096, 4096, f32, false}));
    // One row: each weight is read once.
    constexpr std::pair<const char*, FoveaDtype> kStored[] = {
        {"w-f32", f32},         {"w-f16", f16},         {"w-bf16", FOVEA_BF16}, {"w-q8_0", FOVEA_Q8_0},
        {"w-q4_0", FOVEA_Q4_0}, {"w-q4_1", FOVEA_Q4_1}, {"w-q5_0", FOVEA_Q5_0}, {"w-q5_1", FOVEA_Q5_1},
        {"w-q4_k", FOVEA_Q4_K}, {"w-q5_k", FOVEA_Q5_K}, {"w-q6_k", FOVEA_Q6_K}};
    for (const auto& [name, type] : kStored) {
        cases.push_back(linear_case(name, "linear, 1 x 4096 x 14336", {1, 4096, 14336, type, false}));
        cases.back().unit = BenchUnit::read;
    }
    cases.push_back(tile_case("m-cells", "map of 128k: 1 cell a pixel", {1, false}));
    cases.push_back(tile_case("m-8", "map of 128k: 8 x 8 cells a pixel", {8, false}));
    cases.push_back(tile_case("m-32", "map of 128k: 32 x 32 cells", {32, false}));
    cases.push_back(tile_case("m-sampled", "map of 128k: 1 of 512 x 512 cells", {512, true}));
    const auto add_bf16 = [&](size_t of, const char* name, const char* products_name) {
        cases.push_back(bf16_of(BenchCase(cases[of]), name, "the same, all in bf16", FOVEA_PRECISION_F32));
        cases.push_back(bf16_of(BenchCase(cases[of]), products_name, "the same with products of bf16",
                                FOVEA_PRECISION_BF16_INPUTS));
    };
    add_bf16(0, "a-full-bf16", "a-full-bf16-inputs");
    add_bf16(4, "c-grouped-bf16", "c-grouped-bf16-inputs");
    // Gradients of the first five cases, which are a, b and c.
    constexpr const char* kBackward[] = {"g-a-full", "g-a-causal", "g-b-full", "g-b-causal", "g-c-grouped"};
    for (size_t n = 0; n < std::size(kBackward); ++n)
        cases.push_back(backward_of(BenchCase(cases[n]), kBackward[n]));
    return cases;
}

double bench_flops(const BenchCase& c) {
    if (c.linear.rows) return 2.0 * double(c.linear.rows) * c.linear.n_in * c.linear.n_out;
    if (c.tile.cells) {
        const double cells = c.tile.sampled ? 1.0 : double(c.tile.cells) * c.tile.cells;
        return 2.0 * c.dim * cells * kTileSide * kTileSide;
    }
    const double pair = c.backward ? 14.0 * c.dim : 4.0 * c.dim;
    return pair * c.batch * c.heads_q * double(c.len_q) * double(c.len_kv) * (c.causal ? 0.5 : 1.0);
}

double bench_read_bytes(const BenchCase& c) {
    if (c.linear.rows) return double(stored_bytes(c.linear.w_type, int64_t{c.linear.n_in} * c.linear.n_out));
    return double(stored_bytes(c.kv_type, 2 * int64_t(c.batch) * c.heads_kv * int64_t(c.len_kv) * c.dim));
}

void BenchRun::Free::operator()(void* p) const { ::operator delete(p, kPage); }

Result<BenchRun> BenchRun::make(const BenchCase& c, uint32_t cpu_target, uint32_t threads) {
    Result<FoveaDeviceProperties> properties = cpu_properties(threads);
    if (!properties) return properties.error();
    properties->cpu_target = cpu_target;
    Result<Plan> plan = plan_case(c, *properties);
    if (!plan) return plan.error();
    BenchRun run;
    run.plan_ = std::move(*plan);
    FoveaPlanInfo info = run.plan_.info();
    if (c.backward) {
        // The gradients need its o and lse: the first call of time_forward() computes them.
        Result<Plan> forward = plan_attention(*properties, describe(c));
        if (!forward) return forward.error();
        run.forward_ = std::move(*forward);
        info.workspace_bytes = std::max(info.workspace_bytes, run.forward_.info().workspace_bytes);
    }
    for (uint32_t n = 0; n < FOVEA_BIND_COUNT; ++n) {
        const uint64_t bytes = n == FOVEA_BIND_WORKSPACE ? info.workspace_bytes : info.binding_bytes[n];
        if (bytes == 0) continue;
        void* data = ::operator new(bytes, kPage, std::nothrow);
        if (!data)
            return Error{FOVEA_OUT_OF_HOST_MEMORY, c.name,
                         std::string(c.name) + " needs more memory than this machine has"};
        run.buffers_[n] = {std::unique_ptr<void, Free>(data), bytes};
        if (n != FOVEA_BIND_WORKSPACE && !(info.output_mask >> n & 1))
            fill_normal(data, type_of(c, n), bytes, n + 1);
        else if (n != FOVEA_BIND_WORKSPACE)
            memset(data, 0, bytes);
        // An lse for 2^17 keys: with a smaller one the cells would be too large for weights.
        if (n == FOVEA_BIND_LSE && c.tile.cells)
            std::fill_n(static_cast<float*>(data), bytes / sizeof(float), 12.0f);
        if (n != FOVEA_BIND_WORKSPACE) run.bindings_[n] = {data, bytes};
    }
    run.run_.struct_size = sizeof run.run_;
    run.run_.binding_count = FOVEA_BIND_COUNT;
    run.run_.workspace = {run.buffers_[FOVEA_BIND_WORKSPACE].data.get(), info.workspace_bytes};
    return run;
}

Result<double> BenchRun::time(BenchPool& pool, uint64_t count) { return time_plan(plan_, pool, count); }

Result<double> BenchRun::time_forward(BenchPool& pool, uint64_t count) {
    return time_plan(forward_ ? forward_ : plan_, pool, count);
}

Result<double> BenchRun::time_plan(const Plan& plan, BenchPool& pool, uint64_t count) {
    // A plan rejects buffers that it does not use.
    const FoveaPlanInfo info = plan.info();
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t n = 0; n < FOVEA_BIND_COUNT; ++n)
        if (info.binding_bytes[n]) bindings[n] = bindings_[n];
    run_.bindings = bindings;
    run_.parallel = pool.parallel();
    struct Job {
        const Plan& plan;
        FoveaCpuRun& run;
        uint64_t count;
        Result<void> result;
    } job{plan, run_, count, {}};
    const double seconds = pool.busy_seconds(
        [](void* arg) {
            auto& j = *static_cast<Job*>(arg);
            for (uint64_t n = 0; n < j.count && j.result; ++n) j.result = j.plan.run_cpu(j.run);
        },
        &job);
    if (!job.result) return job.result.error();
    return seconds / double(count);
}

uint64_t BenchRun::buffer_bytes() const {
    uint64_t bytes = 0;
    for (uint32_t n = 0; n < FOVEA_BIND_COUNT; ++n)
        if (n != FOVEA_BIND_WORKSPACE) bytes += buffers_[n].size_bytes;
    return bytes;
}

}  // namespace fovea::app
