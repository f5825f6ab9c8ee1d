#include <fovea/runtime.hpp>

namespace fovea {
namespace {

constexpr struct {
    FoveaKernel kernel;
    const char* name;
} kKernels[] = {
    {FOVEA_KERNEL_AUTO, "auto"},
    {FOVEA_KERNEL_STAGED, "staged"},
    {FOVEA_KERNEL_FLASH, "flash"},
    {FOVEA_KERNEL_FLASH_COOPMAT, "flash_coopmat"},
    {FOVEA_KERNEL_FLASH_COOPMAT2, "flash_coopmat2"},
    {FOVEA_KERNEL_DECODE, "decode"},
    {FOVEA_KERNEL_PLAIN, "plain"},
    {FOVEA_KERNEL_REFERENCE, "reference"},
};

}  // namespace

const char* kernel_name(FoveaKernel kernel) {
    for (const auto& k : kKernels) {
        if (k.kernel == kernel) return k.name;
    }
    return "?";
}

Result<FoveaKernel> kernel_from_name(std::string_view name) {
    std::string known;
    for (const auto& k : kKernels) {
        if (name == k.name) return k.kernel;
        known += (known.empty() ? "" : ", ") + std::string(k.name);
    }
    return Error{FOVEA_INVALID_ARGUMENT, "kernel",
                 "kernel '" + std::string(name) + "' is not one of " + known};
}

}  // namespace fovea
