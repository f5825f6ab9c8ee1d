// Makers of devices whose hardware or drivers the planner knows something about, by their PCI or Khronos id.
#pragma once

#include <fovea/fovea.h>

namespace fovea {

constexpr uint32_t kVendorIntel = 0x8086, kVendorApple = 0x106b, kVendorArm = 0x13b5,
                   kVendorQualcomm = 0x5143;

// Cores of a device. No call of Vulkan tells those of Intel's and Qualcomm's: there a typical device of the
// class.
uint32_t core_count_of(const FoveaDeviceProperties& properties);

// Intel's cores hold 4 KiB of registers for each eight lanes, half of what others do: tiles must be smaller,
// or the compiler spills their sums to memory (`./dev bench codegen --device intel-dg2` shows it).
inline bool has_few_registers(const FoveaDeviceProperties& properties) {
    return properties.vendor_id == kVendorIntel && properties.device_class != FOVEA_CLASS_CPU;
}

}  // namespace fovea
