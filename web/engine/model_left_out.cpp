// What the models' module never runs: it makes plans of attention and linear layers for the CPU, whose
// kernels run them all. Defined here, the rest stays out of a module that travels.
#include "cpu/kernels.hpp"
#include "cpu/plain.hpp"
#include "plan/plan.hpp"
#include "problem/status.hpp"
#include "reference/reference.hpp"

#include <cstdlib>

namespace fovea {

FoveaResult plan_vulkan(FoveaPlan_T&, FoveaDiag* diag) {
    return fail(diag, FOVEA_UNSUPPORTED, "facts.backend", "the models' module plans for the CPU");
}
FoveaResult vulkan_slice(const FoveaPlan_T&, uint64_t, uint64_t, FoveaDispatch*, uint32_t&, FoveaDiag*) {
    abort();
}
void explain_vulkan(const FoveaPlan_T&, TextSink&) {}

namespace cpu {

decltype(Kernels::decode) decode_kernel_of(uint32_t) { return nullptr; }
decltype(Kernels::decode_merge) decode_merge_kernel_of(uint32_t) { return nullptr; }
decltype(Kernels::append) append_kernel_of(uint32_t) { return nullptr; }
decltype(Kernels::merge) merge_kernel_of(uint32_t) { return nullptr; }
decltype(Kernels::gather) gather_kernel_of(uint32_t) { return nullptr; }
decltype(Kernels::map_tile) map_tile_kernel_of(uint32_t) { return nullptr; }
decltype(Kernels::backward) backward_kernel_of(uint32_t) { return nullptr; }

}  // namespace cpu

// Loops that a caller must select by name; the models' module never does. A call that came here would have
// no result, so it aborts.
namespace reference {

uint64_t attention_scratch_bytes(const Problem&) { abort(); }
void attention(const Problem&, const RowRun&) { abort(); }
uint64_t backward_scratch_bytes(const Problem&) { abort(); }
void backward(const Problem&, const Backward&, const RowRun&) { abort(); }
uint64_t map_tile_scratch_bytes(const Problem&, const MapTile&) { abort(); }
void map_tile(const Problem&, const MapTile&, const RowRun&) { abort(); }
void rope(const FoveaRopeDesc&, const RowRun&) { abort(); }
void linear(const FoveaLinearDesc&, const RowRun&) { abort(); }
void norm(const NormDesc&, const RowRun&) { abort(); }
void pointwise(const PointwiseDesc&, const RowRun&) { abort(); }
void merge(const FoveaMergeDesc&, const RowRun&) { abort(); }

}  // namespace reference

namespace plain {

uint64_t attention_scratch_bytes(const Problem&) { abort(); }
void attention(const Problem&, const reference::RowRun&) { abort(); }
uint64_t backward_scratch_bytes(const Problem&) { abort(); }
void backward(const Problem&, const Backward&, const reference::RowRun&) { abort(); }
uint64_t map_tile_scratch_bytes(const Problem&, const MapTile&) { abort(); }
void map_tile(const Problem&, const MapTile&, const reference::RowRun&) { abort(); }
void rope(const FoveaRopeDesc&, const reference::RowRun&) { abort(); }
void linear(const FoveaLinearDesc&, const reference::RowRun&) { abort(); }
void norm(const NormDesc&, const reference::RowRun&) { abort(); }
void pointwise(const PointwiseDesc&, const reference::RowRun&) { abort(); }
void merge(const FoveaMergeDesc&, const reference::RowRun&) { abort(); }

}  // namespace plain

}  // namespace fovea
