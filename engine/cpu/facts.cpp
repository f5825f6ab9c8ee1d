#include "problem/abi_struct.hpp"

namespace fovea {
namespace {

constexpr uint32_t kTargetPlain = 0;

}  // namespace
}  // namespace fovea

using namespace fovea;

FoveaResult foveaCpuFacts(uint32_t threads, FoveaDeviceFacts* out, FoveaDiag* diag) {
    FoveaDeviceFacts facts{};
    facts.struct_size = sizeof facts;
    facts.backend = FOVEA_BACKEND_CPU;
    facts.device_class = FOVEA_CLASS_CPU;
    facts.cpu_threads = threads ? threads : 1;
    facts.cpu_target = kTargetPlain;
    return write_struct(facts, out, "out", diag);
}

const char* foveaCpuTargetName(uint32_t cpu_target) {
    return cpu_target == kTargetPlain ? "plain" : "unknown";
}
