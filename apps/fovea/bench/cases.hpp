// The CPU benchmarks: one attention call each, run again and again on the same buffers.
#pragma once

#include "bench/pool.hpp"

#include <fovea/fovea.hpp>

#include <memory>
#include <string>
#include <vector>

namespace fovea::app {

enum class BenchUnit {
    peak,   // share of the multiply-add peak
    read,   // share of the read bandwidth; K and V, or W, count once
    call,   // time of a call
    memory  // growth of the process above its buffers
};

// A linear layer instead of attention: [rows, n_in] times a weight of `w_type`.
struct BenchLinear {
    uint64_t rows;  // 0: attention
    uint32_t n_in, n_out;
    FoveaDtype w_type;
    bool weight_is_in_out;
};

// A map tile of 256 x 256 pixels instead of attention itself; the call's heads, lengths and dim hold.
struct BenchTile {
    uint32_t cells;  // along a pixel's side; 0: no tile
    bool sampled;
};

struct BenchCase {
    const char* name;  // "a-full"
    const char* what;
    BenchUnit unit;
    uint32_t batch, heads_q, heads_kv;
    uint64_t len_q, len_kv;
    uint32_t dim;
    FoveaDtype kv_type;
    bool causal;
    FoveaKernel kernel;
    BenchLinear linear;
    BenchTile tile;
    bool backward;  // the call's gradients of q, k and v instead of the call
    bool one_type;  // q and o are of kv_type, too
    FoveaPrecision precision;
};

// Cases a to f, then linear layers, map tiles and gradients.
std::vector<BenchCase> cpu_bench_cases();

// 4 * B * Hq * Lq * Lkv * D, half of it for a causal call; 2 * rows * n_in * n_out for a linear layer,
// 2 * D for each cell of a map tile; gradients 14 * D a pair (8 * D + 6 * Dv: two passes, seven products)
// where the call itself has 4. Read: bytes of K and V, or of W.
double bench_flops(const BenchCase& c);
double bench_read_bytes(const BenchCase& c);

// A plan with its buffers.
class BenchRun {
  public:
    static Result<BenchRun> make(const BenchCase& c, uint32_t cpu_target, uint32_t threads);
    // Runs `count` calls and returns the CPU time of the busiest worker per call.
    Result<double> time(BenchPool& pool, uint64_t count);
    // The same of the call that the gradients are of; of a case without gradients, the call.
    Result<double> time_forward(BenchPool& pool, uint64_t count);
    FoveaPlanInfo info() const { return plan_.info(); }
    uint64_t buffer_bytes() const;
    FoveaHostBuffer binding(uint32_t index) const { return bindings_[index]; }

  private:
    struct Free {
        void operator()(void* p) const;
    };
    struct Buffer {
        std::unique_ptr<void, Free> data;
        uint64_t size_bytes = 0;
    };
    Result<double> time_plan(const Plan& plan, BenchPool& pool, uint64_t count);
    Plan plan_, forward_;  // the second is empty without gradients
    Buffer buffers_[FOVEA_BIND_COUNT];
    FoveaHostBuffer bindings_[FOVEA_BIND_COUNT] = {};
    FoveaCpuRun run_{};
};

}  // namespace fovea::app
