// Which subgroup size kernels may count on: a pure function of the device's properties.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea {

// A size that a pipeline can require and reduce over, or the reason why there is none.
struct SubgroupChoice {
    uint32_t size;    // 0: none
    const char* why;  // the reason if `size` is 0, else null
};

// `threads`: of the workgroup that is to be one subgroup. A device without subgroups of that size, but with
// smaller ones of at least `least` lanes, gets its largest; `least` = `threads`: no other will do.
SubgroupChoice choose_subgroup(const FoveaDeviceProperties& properties, uint32_t threads, uint32_t least);

}  // namespace fovea
