// Linear layers on weights as their files store them.
#pragma once

#include <fovea/model/trace.hpp>

namespace fovea {

// y = x W^T + bias on a weight whose type linear() reads.
FoveaLinearDesc linear_of(const StoredWeight& weight, const F32Tensor& bias, const F32Tensor& x);

}  // namespace fovea
