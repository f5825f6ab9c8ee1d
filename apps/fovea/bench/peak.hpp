// The ceilings that the benchmarks are measured against: multiply-adds and reads of this machine, in this
// process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::app {

// float32 multiply-adds that one thread reaches with the instructions of a target
// (FoveaDeviceProperties::cpu_target), in GFLOP/s, two to a multiply-add. 0 if this build or CPU does not
// have the target.
double measure_peak_gflops(uint32_t cpu_target, double seconds);

// Ways to read memory: a thread goes through one to eight places of it at a time, with or without fetching
// the lines ahead. None is the quickest on every machine and for every kind of page; the limit is that which
// is.
struct ReadWay {
    uint32_t streams;
    bool ahead;
};
constexpr ReadWay kReadWays[] = {{1, false}, {1, true}, {2, false}, {2, true},
                                 {4, false}, {4, true}, {8, false}, {8, true}};
constexpr size_t kReadWayCount = sizeof kReadWays / sizeof kReadWays[0];

// Returns the read rate of all threads of `pool` together, in GB/s: `passes` over `count` ranges of memory,
// one MiB of a range for a worker at a time. Each range has at least a few MiB.
struct ReadRange {
    const void* from;
    uint64_t bytes;
};
class BenchPool;
double measure_read_gbps(BenchPool& pool, uint32_t cpu_target, size_t way, const ReadRange* ranges,
                         size_t count, uint64_t passes);

// CPU targets that run here, best first, ended by 0.
struct TargetList {
    uint32_t ids[9];
};
TargetList runnable_cpu_targets();

}  // namespace fovea::app
