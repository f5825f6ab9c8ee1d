// Kernels that the page's own calls never take: gradients are the trainer's, results are merged nowhere,
// caches are neither appended to nor compacted. Defined here, they stay out of a module that travels; a plan
// that wants one finds none and takes the plain loops, which are slow and right.
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::backward) backward_kernel_of(uint32_t) { return nullptr; }
decltype(Kernels::merge) merge_kernel_of(uint32_t) { return nullptr; }
decltype(Kernels::append) append_kernel_of(uint32_t) { return nullptr; }
decltype(Kernels::gather) gather_kernel_of(uint32_t) { return nullptr; }

}  // namespace fovea::cpu
