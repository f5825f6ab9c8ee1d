#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench_peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace fovea::app::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

HWY_INLINE V step(V sum, V a, V b) {
#if HWY_ARCH_WASM && defined(__wasm_relaxed_simd__)
    return V{wasm_f32x4_relaxed_madd(sum.raw, a.raw, b.raw)};
#else
    return hn::MulAdd(sum, a, b);
#endif
}

// Twelve chains in registers: more than latency times width on every processor so far. Each has a name,
// because an array may end up on the stack, at less than half the speed.
float multiply_add_chains(uint64_t steps) {
    const F f;
    const V a = hn::Set(f, 0.999f), b = hn::Set(f, 1e-9f);
    // Different starts, or the compiler finds that the chains are all one.
    V s0 = hn::Iota(f, 0), s1 = hn::Iota(f, 1), s2 = hn::Iota(f, 2), s3 = hn::Iota(f, 3);
    V s4 = hn::Iota(f, 4), s5 = hn::Iota(f, 5), s6 = hn::Iota(f, 6), s7 = hn::Iota(f, 7);
    V s8 = hn::Iota(f, 8), s9 = hn::Iota(f, 9), s10 = hn::Iota(f, 10), s11 = hn::Iota(f, 11);
    for (uint64_t n = 0; n < steps; ++n) {
        s0 = step(s0, a, b), s1 = step(s1, a, b), s2 = step(s2, a, b), s3 = step(s3, a, b);
        s4 = step(s4, a, b), s5 = step(s5, a, b), s6 = step(s6, a, b), s7 = step(s7, a, b);
        s8 = step(s8, a, b), s9 = step(s9, a, b), s10 = step(s10, a, b), s11 = step(s11, a, b);
    }
    const V s = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
    return hn::GetLane(hn::SumOfLanes(f, hn::Add(s, hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)))));
}
float chain_flops_per_step() { return float(12 * 2 * hn::Lanes(F())); }

// `count` is a multiple of 128.
float read_sum(const float* from, uint64_t count) {
    const F f;
    const uint64_t lanes = hn::Lanes(f);
    V s0 = hn::Zero(f), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    for (uint64_t n = 0; n + 8 * lanes <= count; n += 8 * lanes) {
        const float* at = from + n;
        s0 = hn::Add(s0, hn::LoadU(f, at)), s1 = hn::Add(s1, hn::LoadU(f, at + lanes));
        s2 = hn::Add(s2, hn::LoadU(f, at + 2 * lanes)), s3 = hn::Add(s3, hn::LoadU(f, at + 3 * lanes));
        s4 = hn::Add(s4, hn::LoadU(f, at + 4 * lanes)), s5 = hn::Add(s5, hn::LoadU(f, at + 5 * lanes));
        s6 = hn::Add(s6, hn::LoadU(f, at + 6 * lanes)), s7 = hn::Add(s7, hn::LoadU(f, at + 7 * lanes));
    }
    const V s = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
    return hn::GetLane(hn::SumOfLanes(f, s));
}

}  // namespace fovea::app::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "bench_peak.hpp"
#include "bench_pool.hpp"

#include <fovea/fovea.hpp>

#include <algorithm>

namespace fovea::cpu {  // where the targets' ids are

float (*chains_of(uint32_t target))(uint64_t) {
    using namespace fovea::app;
    FOVEA_SELECT_TARGET(target, multiply_add_chains)
}
float (*flops_of(uint32_t target))() {
    using namespace fovea::app;
    FOVEA_SELECT_TARGET(target, chain_flops_per_step)
}
float (*read_of(uint32_t target))(const float*, uint64_t) {
    using namespace fovea::app;
    FOVEA_SELECT_TARGET(target, read_sum)
}

}  // namespace fovea::cpu

namespace fovea::app {
namespace {

constexpr uint32_t kReadParts = 64;

bool runs_here(uint32_t target) {
    Result<FoveaDeviceFacts> facts = cpu_facts();
    return facts && target != 0 && target <= facts->cpu_target && (cpu::kCompiledTargets >> target & 1u);
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

double measure_read_gbps(BenchPool& pool, uint32_t cpu_target, const void* from, uint64_t bytes, int rounds) {
    if (!runs_here(cpu_target)) return 0;
    struct Job {
        BenchPool& pool;
        float (*read)(const float*, uint64_t);
        const float* from;
        uint64_t part;
        std::atomic<float> sink;
    } job{pool,
          cpu::read_of(cpu_target),
          static_cast<const float*>(from),
          bytes / 4 / kReadParts / 128 * 128,
          {}};
    const auto part = [](void* arg, uint32_t index, uint32_t) {
        auto& j = *static_cast<Job*>(arg);
        j.sink = j.read(j.from + index * j.part, j.part);
    };
    const FoveaTask task = part;
    struct Pass {
        Job& job;
        FoveaTask task;
    } pass{job, task};
    double best = 1e30;
    for (int n = 0; n < rounds; ++n) {
        const double time = pool.busy_seconds(
            [](void* arg) {
                auto& p = *static_cast<Pass*>(arg);
                p.job.pool.run(kReadParts, p.task, &p.job);
            },
            &pass);
        best = std::min(best, time);
    }
    return double(job.part) * kReadParts * 4 / best * 1e-9;
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
