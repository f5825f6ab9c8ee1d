// The instructions of a kernel's loop over keys (or over depth), counted from the listing of AMD's compiler.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea::app {

// Counted by what they occupy; an instruction of an inner loop as often as the loop runs for one turn of the
// outer.
struct LoopMix {
    double matrix = 0;  // v_wmma
    double fused = 0;   // multiply-adds in separate instructions
    double dual = 0;    // instructions that issue two operations
    double vector = 0;  // all other vector instructions
    double shared = 0;  // accesses to shared memory
    double global = 0;  // loads and stores of buffers
    double barriers = 0;
    double multiply_adds = 0;  // multiply-adds of each lane, in any instruction
    // Cycles of the vector unit for what the kernel is for, and for all that the loop issues to it: their
    // ratio is the share of the unit's rate that this mix allows at best, whatever memory does.
    double unit_cycles = 0, issue_cycles = 0;

    double share() const { return issue_cycles > 0 ? unit_cycles / issue_cycles : 0; }
};

// `lanes`: of a subgroup. `expected`: multiply-adds of a lane in one turn of the outer loop, of each inner
// loop in order (q * k, then weights * v); they tell how often an inner loop runs, which the listing does
// not. Empty: once.
LoopMix mix_of_amd_listing(std::string_view listing, uint32_t lanes, const std::vector<double>& expected);

}  // namespace fovea::app
