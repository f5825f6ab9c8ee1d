// Properties of a CPU for tests of plans.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea::test {

// `target`: an instruction set by its number, 0 the best one here. Caches of unknown size.
inline FoveaDeviceProperties cpu_device(uint32_t workers, uint32_t target = 0) {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    properties.backend = FOVEA_BACKEND_CPU;
    properties.cpu_threads = workers;
    properties.cpu_target = target;
    return properties;
}

}  // namespace fovea::test
