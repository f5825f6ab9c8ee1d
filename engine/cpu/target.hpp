// The instruction sets that the CPU kernels are compiled for, and the register tiles of each. Plain values,
// so that the planner can plan for a CPU that it does not run on.
#pragma once

#include <cstdint>

namespace fovea::cpu {

// Values of FoveaDeviceProperties::cpu_target. Append only; 0 means the best one that runs here.
enum Target : uint32_t {
    kTargetBest = 0,
    kTargetScalar = 1,
    kTargetSse4 = 2,
    kTargetAvx2 = 3,
    kTargetAvx512 = 4,
    kTargetNeon = 5,
    kTargetWasm = 6,
    kTargetWasmRelaxed = 7,
    kTargetCount = 8
};

// A register tile holds `rows` x `vectors` accumulators of `lanes` floats; queries are along the lanes. If
// many panels share a block, its keys are packed for tiles of `key_rows`; 0: never. `widens_halves`: there is
// no instruction that converts float16 to float32.
struct TargetShape {
    uint32_t lanes, vectors, rows, key_rows = 0;
    bool widens_halves = false;
    constexpr uint32_t panel() const { return lanes * vectors; }  // queries of one panel
};

constexpr TargetShape target_shape(uint32_t target) {
    switch (target) {
        case kTargetSse4:
            return {4, 2, 4, 0, true};
        case kTargetAvx2:
            return {8, 3, 4};
        case kTargetAvx512:
            return {16, 3, 8, 9};
        case kTargetNeon:
            return {4, 4, 6};
        case kTargetWasm:
            return {4, 2, 4, 0, true};
        case kTargetWasmRelaxed:
            return {4, 3, 3, 0, true};
        default:
            return {1, 8, 2};
    }
}

// "AVX2", ...; "unknown" for anything else.
const char* target_name(uint32_t target);

// Bit t: this build has the kernels of target t and this CPU can run them.
uint32_t runnable_targets();

// True if the CPU multiplies bytes and adds four products at once (AVX512-VNNI).
bool has_byte_products();
// True if this build has kernels with products of pairs of bfloat16 and this CPU can run them.
bool has_pair_products();

// The fastest of runnable_targets().
uint32_t best_target();

}  // namespace fovea::cpu
