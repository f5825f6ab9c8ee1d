#include "plan/vulkan_plan.hpp"

#include "plan/plan.hpp"
#include "plan/text_sink.hpp"
#include "problem/status.hpp"

namespace fovea {

FoveaResult plan_vulkan(FoveaPlan_T&, FoveaDiag* diag) {
    return fail(diag, FOVEA_UNSUPPORTED, "facts.backend", "this build has no Vulkan kernels");
}

FoveaResult vulkan_slice(const FoveaPlan_T&, uint64_t, FoveaDispatch*, uint32_t& count, FoveaDiag* diag) {
    count = 0;
    return fail(diag, FOVEA_UNSUPPORTED, "plan", "this build has no Vulkan kernels");
}

void explain_vulkan(const FoveaPlan_T&, TextSink&) {}

}  // namespace fovea
