// Properties of a CPU for tests of plans.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea::test {

// `target`: an instruction set by its number, 0 the best one here. Caches of unknown size.
inline FoveaDeviceFacts cpu_device(uint32_t workers, uint32_t target = 0) {
    FoveaDeviceFacts facts{};
    facts.struct_size = sizeof facts;
    facts.backend = FOVEA_BACKEND_CPU;
    facts.cpu_threads = workers;
    facts.cpu_target = target;
    return facts;
}

}  // namespace fovea::test
