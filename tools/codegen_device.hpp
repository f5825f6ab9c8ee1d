// Compiles the pipelines of plans on a device of their own and reads the compiler's statistics. Nothing is
// run.
#pragma once

#include "codegen_mix.hpp"

#include <fovea/fovea.hpp>

#include <memory>
#include <string>
#include <vector>

namespace fovea::app {

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
