// One run of a linear layer as its kernel sees it.
#pragma once

#include "cpu/linear_layout.hpp"

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea::cpu {

struct LinearCall {
    const FoveaLinearDesc& d;  // as make_linear leaves it
    const LinearCut& cut;
    const FoveaHostBuffer* bindings;  // FOVEA_BIND_COUNT of them

    template <class T>
    T* at(FoveaBinding binding, int64_t index) const {
        return static_cast<T*>(bindings[binding].data) + index;
    }
};

}  // namespace fovea::cpu
