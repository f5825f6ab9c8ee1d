// Linear layers on weights as their files store them.
#pragma once

#include <fovea/model/trace.hpp>

#include "cpu/target.hpp"

namespace fovea {

// Whether stored_rows_on_cpu() takes this weight: its type has a kernel, and its bytes lie as that needs.
bool has_stored_rows(const StoredWeight& weight);
// The products by the kernels of `target`, one row of x at a time; threads share them all.
void stored_rows_on_cpu(uint32_t target, std::span<const StoredProduct> products, const F32Tensor& x,
                        const FoveaParallel* parallel, bool byte_products = cpu::has_byte_products());

// y = x W^T + bias on a weight whose type linear() reads.
FoveaLinearDesc linear_of(const StoredWeight& weight, const F32Tensor& bias, const F32Tensor& x);

}  // namespace fovea
