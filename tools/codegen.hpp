// The parts of fovea_codegen: the calls whose pipelines it compiles, the device, and a listing's
// instructions.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::app {

// ---- cases: what programs that use attention ask for most ----

struct CodegenCase {
    std::string name;  // "prefill-d64-f16-matrix"
    bool gate;         // one of the few that a test compiles on every device
    std::function<Result<Plan>(const FoveaDeviceProperties& properties)> plan;
    uint32_t dim = 0;  // head size of queries and keys; 0: not attention
};

std::vector<CodegenCase> codegen_cases();

// ---- the instructions of a kernel's loop over keys (or over depth), from the listing of AMD's compiler ----

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

// ---- a separate device, on which pipelines of plans are compiled for their statistics; nothing is run ----

// The statistics of one compiled pipeline. The driver decides which of them exist; 0: not reported.
struct PipelineReport {
    std::string kernel;      // the shader module
    uint32_t threads = 0;    // threads of a workgroup
    uint32_t subgroup = 0;   // subgroup size that the compiler chose
    uint64_t registers = 0;  // registers of a thread
    uint64_t spills = 0;     // registers that are kept in memory at times
    uint64_t scratch_bytes = 0;
    uint64_t shared_bytes = 0;
    uint64_t occupancy = 0;  // subgroups that a SIMD (AMD), a core (Adreno), an SM (NVIDIA) holds at a time
    uint64_t instructions = 0;
    uint64_t cycles =
        0;  // the compiler's own estimate; of one driver's pipelines only, and weighing loops its way
    bool has_mix = false;  // the listing was read: only on AMD
    LoopMix mix;
};

class CodegenDevice {
  public:
    // Device `number` (from 1) of this process's Vulkan drivers. With `validate` under the validation layer.
    static Result<CodegenDevice> open(uint32_t number, bool validate);
    CodegenDevice(CodegenDevice&&) noexcept;
    ~CodegenDevice();

    const FoveaDeviceProperties& properties() const;
    const std::string& name() const;
    // Compiles the pipeline of a dispatch; one that is the same as an earlier one's is not compiled again.
    // `dim`: of the call's queries and keys. `mix`: reads the listing, too.
    Result<PipelineReport> compile(const FoveaDispatch& dispatch, uint32_t dim, bool mix);
    // Validation messages since the last call.
    std::vector<std::string> take_messages();

  private:
    struct State;
    explicit CodegenDevice(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fovea::app
