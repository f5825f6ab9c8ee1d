// Functions of a device's properties: what kernels may count on, and the names of its features.
#pragma once

#include <fovea/fovea.h>

#include <cstddef>
#include <cstdint>

namespace fovea {

// ---- features ----

// "shaderFloat16, subgroupSizeControl and computeFullSubgroups", cut to the room.
void write_feature_names(uint32_t features, char* text, size_t room);

// Returns why a kernel that needs `needed` cannot run, or null if all of them are enabled. If the device has
// everything that is missing but the application did not enable it, the text says so and names the switch;
// otherwise it is `lacks`.
const char* missing_features(const FoveaDeviceProperties& properties, uint32_t needed, const char* lacks);

// Rejects bits that this library does not know.
FoveaResult check_features(const FoveaDeviceProperties& properties, FoveaDiag* diag);

// ---- subgroups ----

// A size that a pipeline can require and reduce over, or the reason why there is none.
struct SubgroupChoice {
    uint32_t size;    // 0: none
    const char* why;  // the reason if `size` is 0, else null
};

// `threads`: of the workgroup that is to be one subgroup. A device without subgroups of that size, but with
// smaller ones of at least `least` lanes, gets its largest; `least` = `threads`: no other will do.
SubgroupChoice choose_subgroup(const FoveaDeviceProperties& properties, uint32_t threads, uint32_t least);

// ---- devices whose hardware or drivers the planner knows something about, by their PCI or Khronos ID ----

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
