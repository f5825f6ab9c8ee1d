// Runs a description on some backend, kernel and instruction set, through the public API, with guards around
// every buffer. The backend is chosen by a name, so that a failure can name it in its replay command:
//
//   reference | plain | cpu[:KERNEL][@TARGET] | vulkan[:KERNEL][@KIND,KIND] | webgpu[:KERNEL][@BUFFERS] |
//   dawn[:KERNEL][@BUFFERS]
//
// KIND: discrete, planned for as a GPU; nosubgroup, as a device without subgroup operations; six-buffers, as
// one that lets a kernel bind six, so that most inputs are gathered.
// webgpu is Chromium's, dawn npm's package `webgpu` in node, from the folder FOVEA_DAWN.
// BUFFERS: storage buffers that a kernel may bind, 8 or 10.
#pragma once

#include "support/case.hpp"

#include <fovea/fovea.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fovea::test {

struct ExecuteOptions {
    uint64_t shuffle_seed = 0;  // not 0: slices one by one in a random order, some of them twice
    uint32_t workers = 1;       // CPU: threads lent to the run
    bool host_memory = false;   // Vulkan: the runtime copies from and to host memory of the tensors' sizes
};

struct Outcome {
    enum class Kind {
        ran,
        refused,  // the plan was refused; `text` says why
        broken    // a call failed, or a guard or an input changed; `text` says what
    } kind = Kind::broken;
    std::string text;
    FoveaResult code = FOVEA_OK;
    FoveaKernel kernel = FOVEA_KERNEL_AUTO;
    // Outputs of FoveaPlanInfo::tensor_bytes. Every byte that was not written is kUntouched.
    Tensors outputs;

    bool ran() const { return kind == Kind::ran; }
};

constexpr std::byte kUntouched{0xff};  // a NaN in every float type

class Executor {
  public:
    virtual ~Executor() = default;
    virtual const std::string& name() const = 0;
    virtual Outcome run(const FoveaAttentionDesc& desc, const Tensors& inputs,
                        const ExecuteOptions& options = {}) = 0;
    // inputs[FOVEA_BIND_LSE] is one of them; so are O and DO of gradients, and what a gradient is added to.
    virtual Outcome run_backward(const FoveaAttentionDesc& forward,
                                 const FoveaAttentionBackwardDesc& backward, const Tensors& inputs,
                                 const ExecuteOptions& options = {}) = 0;
    virtual Outcome run_tile(const FoveaAttentionDesc& desc, const FoveaMapTileDesc& tile,
                             const Tensors& inputs, const ExecuteOptions& options = {}) = 0;
    virtual Outcome run_merge(const FoveaMergeDesc& merge, const Tensors& inputs,
                              const ExecuteOptions& options = {}) = 0;
};

// Null with the reason in `error` when the name means nothing or the machine has no such thing.
std::unique_ptr<Executor> make_executor(std::string_view name, std::string& error);

// Sizes of the bindings of a description, as every backend's plan has them.
Result<FoveaPlanInfo> plan_info(const FoveaAttentionDesc& desc);

}  // namespace fovea::test
