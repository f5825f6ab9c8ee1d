#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/simd_inl.hpp"

#include "bench/peak.hpp"

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {  // mul_add is the kernels' own: the limit is that of their instruction

// Twelve chains in registers: more than latency times width on every CPU so far. Each has a name, because an
// array may end up on the stack, at less than half the speed.
float multiply_add_chains(uint64_t steps) {
    const F f;
    const V a = hn::Set(f, 0.999f), b = hn::Set(f, 1e-9f);
    // Different starts, or the compiler finds that the chains are all one.
    V s0 = hn::Iota(f, 0), s1 = hn::Iota(f, 1), s2 = hn::Iota(f, 2), s3 = hn::Iota(f, 3);
    V s4 = hn::Iota(f, 4), s5 = hn::Iota(f, 5), s6 = hn::Iota(f, 6), s7 = hn::Iota(f, 7);
    V s8 = hn::Iota(f, 8), s9 = hn::Iota(f, 9), s10 = hn::Iota(f, 10), s11 = hn::Iota(f, 11);
    for (uint64_t n = 0; n < steps; ++n) {
        s0 = mul_add(s0, a, b), s1 = mul_add(s1, a, b), s2 = mul_add(s2, a, b), s3 = mul_add(s3, a, b);
        s4 = mul_add(s4, a, b), s5 = mul_add(s5, a, b), s6 = mul_add(s6, a, b), s7 = mul_add(s7, a, b);
        s8 = mul_add(s8, a, b), s9 = mul_add(s9, a, b), s10 = mul_add(s10, a, b), s11 = mul_add(s11, a, b);
    }
    const V s = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
    return hn::GetLane(hn::SumOfLanes(f, hn::Add(s, hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)))));
}
float chain_flops_per_step() { return float(12 * 2 * hn::Lanes(F())); }

constexpr size_t kStepBytes = 256, kAheadBytes = 1024;

// Sums `bytes` at `from` in kStreams equal parts, side by side; each is a multiple of kStepBytes.
template <size_t kStreams, bool kAhead>
float read_streams(const char* from, size_t bytes) {
    const F f;
    constexpr size_t kVectorBytes = kLanes * sizeof(float);
    const size_t part = bytes / kStreams;
    V s0 = hn::Zero(f), s1 = s0, s2 = s0, s3 = s0;
    for (size_t step = 0; step < part; step += kStepBytes) {
        for (size_t stream = 0; stream < kStreams; ++stream) {
            const char* at = from + stream * part + step;
            for (size_t line = 0; kAhead && line < kStepBytes; line += 64)
                hwy::Prefetch(at + line + kAheadBytes);
            for (size_t n = 0; n < kStepBytes; n += 4 * kVectorBytes) {
                const auto* x = reinterpret_cast<const float*>(at + n);
                s0 = hn::Add(s0, hn::LoadU(f, x)), s1 = hn::Add(s1, hn::LoadU(f, x + kLanes));
                s2 = hn::Add(s2, hn::LoadU(f, x + 2 * kLanes)),
                s3 = hn::Add(s3, hn::LoadU(f, x + 3 * kLanes));
            }
        }
    }
    return hn::GetLane(hn::SumOfLanes(f, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

float read_sum(const char* from, size_t bytes, size_t way) {
    static constexpr decltype(&read_streams<1, false>) kWays[app::kReadWayCount] = {
        &read_streams<1, false>, &read_streams<1, true>, &read_streams<2, false>, &read_streams<2, true>,
        &read_streams<4, false>, &read_streams<4, true>, &read_streams<8, false>, &read_streams<8, true>};
    return kWays[way](from, bytes);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "bench/pool.hpp"

#include <fovea/fovea.hpp>

#include <algorithm>

namespace fovea::cpu {

float (*chains_of(uint32_t target))(uint64_t) { FOVEA_SELECT_TARGET(target, multiply_add_chains) }
float (*flops_of(uint32_t target))() { FOVEA_SELECT_TARGET(target, chain_flops_per_step) }
float (*read_of(uint32_t target))(const char*, size_t, size_t) { FOVEA_SELECT_TARGET(target, read_sum) }

}  // namespace fovea::cpu

namespace fovea::app {
namespace {

constexpr uint64_t kReadPart = 1 << 20;

bool runs_here(uint32_t target) {
    Result<FoveaDeviceProperties> properties = cpu_properties();
    return properties && target != 0 && target <= properties->cpu_target &&
           (cpu::kCompiledTargets >> target & 1u);
}

}  // namespace

double measure_peak_gflops(uint32_t cpu_target, double seconds) {
    if (!runs_here(cpu_target)) return 0;
    auto* const chains = cpu::chains_of(cpu_target);
    constexpr uint64_t kSteps = 20000;
    volatile float sink = 0;
    double best = 1e30;
    for (const double end = thread_seconds() + seconds; thread_seconds() < end;) {
        const double start = thread_seconds();
        sink = sink + chains(kSteps);
        best = std::min(best, thread_seconds() - start);
    }
    return kSteps * double(cpu::flops_of(cpu_target)()) / best * 1e-9;
}

double measure_read_gbps(BenchPool& pool, uint32_t cpu_target, size_t way, const ReadRange* ranges,
                         size_t count, uint64_t passes) {
    if (!runs_here(cpu_target)) return 0;
    struct Job {
        BenchPool& pool;
        float (*read)(const char*, size_t, size_t);
        size_t way;
        const ReadRange* ranges;
        uint64_t passes;
        uint32_t parts;
        std::atomic<float> sink;
    } job{pool, cpu::read_of(cpu_target), way, ranges, passes, 0, {}};
    for (size_t n = 0; n < count; ++n) job.parts += uint32_t(ranges[n].bytes / kReadPart);
    const double seconds = pool.busy_seconds(
        [](void* arg) {
            auto& all = *static_cast<Job*>(arg);
            const FoveaTask part = [](void* of, uint32_t index, uint32_t) {
                auto& j = *static_cast<Job*>(of);
                const ReadRange* range = j.ranges;
                uint64_t at = index;
                for (; at >= range->bytes / kReadPart; ++range) at -= range->bytes / kReadPart;
                j.sink = j.read(static_cast<const char*>(range->from) + at * kReadPart, kReadPart, j.way);
            };
            for (uint64_t n = 0; n < all.passes; ++n) all.pool.run(all.parts, part, arg);
        },
        &job);
    return double(job.parts) * double(passes) * double(kReadPart) / seconds * 1e-9;
}

TargetList runnable_cpu_targets() {
    TargetList list{};
    size_t count = 0;
    for (uint32_t target = cpu::kTargetCount; target-- > 1;)
        if (runs_here(target)) list.ids[count++] = target;
    return list;
}

}  // namespace fovea::app
#endif
