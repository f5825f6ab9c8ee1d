#include "plan/vulkan/checked.hpp"

#include "plan/vulkan/flash.hpp"
#include "plan/vulkan/kernels.hpp"
#include "problem/status.hpp"

namespace fovea {

Shader main_shader(const FoveaPlan_T& plan) {
    switch (plan.operation) {
        case Operation::attention:
            return plan.info.kernel == FOVEA_KERNEL_STAGED ? Shader::softmax
                                                           : flash_shader(plan.vulkan.flash);
        case Operation::rope:
            return Shader::rope;
        case Operation::linear:
            return linear_shader(plan);
        case Operation::append:
        case Operation::gather:
            return Shader::cache_rows;
        case Operation::map_tile:
            return Shader::map_tile;
        case Operation::backward:
            return Shader::backward_query;
        case Operation::merge:
            return Shader::merge;
        case Operation::norm:
            return Shader::norm;
        case Operation::pointwise:
            break;
    }
    return Shader::pointwise;
}

uint32_t check_class(const FoveaPlan_T& plan) {
    if (plan.narrow.one_byte) return FOVEA_CHECK_QUANTIZED;
    return plan.narrow.two_bytes ? FOVEA_CHECK_F16 : FOVEA_CHECK_F32;
}

const char* check_class_name(uint32_t check_class) {
    constexpr const char* kNames[FOVEA_CHECK_CLASS_COUNT] = {"float32", "16-bit", "quantized"};
    return kNames[check_class];
}

const char* checked_kernel_name(Shader main) {
    switch (main) {
        case Shader::softmax:
            return "staged";
        case Shader::cache_rows:
            return "append and gather";
        case Shader::backward_query:
            return "gradients";
        default:
            return foveaShaderName(uint32_t(main));
    }
}

FoveaResult check_driver(const FoveaPlan_T& plan, FoveaDiag* diag) {
    const Shader main = main_shader(plan);
    if (!has_failed(plan, main)) return FOVEA_OK;
    return fail(diag, FOVEA_UNSUPPORTED, "properties.failed_shaders",
                "%s is off for %s tensors: %s; update the driver, or use another kernel or the CPU",
                checked_kernel_name(main), check_class_name(check_class(plan)), kFailedCheck);
}

}  // namespace fovea
