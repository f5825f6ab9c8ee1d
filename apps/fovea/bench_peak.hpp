// The ceilings that the benchmarks are measured against: multiply-adds and reads of this machine, in this
// process.
#pragma once

#include <cstdint>

namespace fovea::app {

// float32 multiply-adds that one thread reaches with the instructions of a target
// (FoveaDeviceFacts::cpu_target), in GFLOP/s, two to a multiply-add. 0 if this build or processor does not
// have the target.
double measure_peak_gflops(uint32_t cpu_target, double seconds);

// What `bench_pool` threads together read from memory, GB/s: the best of `rounds` passes over `bytes` at
// `from`.
class BenchPool;
double measure_read_gbps(BenchPool& pool, uint32_t cpu_target, const void* from, uint64_t bytes, int rounds);

// CPU targets that run here, best first, ended by 0.
struct TargetList {
    uint32_t ids[9];
};
TargetList runnable_cpu_targets();

}  // namespace fovea::app
