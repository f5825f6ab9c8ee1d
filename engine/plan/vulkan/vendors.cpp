#include "plan/vulkan/vendors.hpp"

namespace fovea {
namespace {

constexpr uint32_t kUnknownCores = 16;
constexpr uint32_t kSoftwareCores = 8;

// Typical cores of devices whose driver does not report them: Arc A770 and Lunar Lake, Adreno 740.
struct TypicalCores {
    uint32_t vendor_id;
    FoveaDeviceClass device_class;
    uint32_t cores;
};
constexpr TypicalCores kTypicalCores[] = {
    {kVendorIntel, FOVEA_CLASS_DISCRETE, 32},
    {kVendorIntel, FOVEA_CLASS_INTEGRATED, 8},
    {kVendorQualcomm, FOVEA_CLASS_INTEGRATED, 6},
};

}  // namespace

uint32_t core_count_of(const FoveaDeviceProperties& properties) {
    if (properties.core_count) return properties.core_count;
    if (properties.device_class == FOVEA_CLASS_CPU) return kSoftwareCores;
    for (const TypicalCores& t : kTypicalCores)
        if (properties.vendor_id == t.vendor_id && properties.device_class == t.device_class) return t.cores;
    return kUnknownCores;
}

}  // namespace fovea
