// Runs a plan of rope, linear or append on one device, over copies of given buffers and with guards around
// them. A name chooses the backend, as tests/support/executor.hpp does for attention:
//
//   cpu@TARGET | vulkan | vulkan@discrete, planned for as a GPU | webgpu | dawn
#pragma once

#include "support/executor.hpp"

#include <memory>
#include <string>
#include <vector>

namespace fovea::test {

// Contents of the bindings of a plan, of exactly the sizes that it asks for, indexed by FoveaBinding.
using Buffers = Tensors;

struct OperationRun {
    uint64_t shuffle_seed = 0;  // not 0: slices in a random order
    uint32_t workers = 1;       // CPU: threads lent to the run
    bool in_place = false;      // Y is X's memory
};

class OperationRunner {
  public:
    virtual ~OperationRunner() = default;
    virtual const std::string& name() const = 0;
    virtual const FoveaDeviceProperties& properties() const = 0;
    // The buffers after the run; an error too when a byte outside one of them was written.
    virtual Result<Buffers> run(const Plan& plan, const Buffers& given, const OperationRun& how) = 0;
};

// Null, with the reason in `error`, when this machine has no such thing.
std::unique_ptr<OperationRunner> make_operation_runner(const std::string& name, std::string& error);

// The runners of this program's tests.
std::vector<std::unique_ptr<OperationRunner>>& runners();

// Every instruction set of this build that this CPU runs; the others are printed as skipped.
std::vector<std::string> cpu_runner_names();

}  // namespace fovea::test
