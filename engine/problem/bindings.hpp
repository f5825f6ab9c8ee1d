// The buffers of one run, checked before anything is written or recorded: those that the plan has and no
// other present, large enough, aligned, and no output overlapping anything else. Shared by the CPU backend
// (addresses) and the Vulkan recorder (buffers and offsets).
#pragma once

#include <fovea/fovea.h>

#include <cstddef>
#include <cstdint>

namespace fovea {

// A set of bindings: bit i is FoveaBinding i.
using BindingMask = uint64_t;
static_assert(FOVEA_BIND_COUNT <= 64);
constexpr BindingMask binding_bit(uint32_t binding) { return BindingMask{1} << binding; }

// Returns "Q", "SEQUENCES", "workspace"; "?" if the index is not a binding.
const char* binding_name(uint32_t binding);

struct BindingRange {
    bool given = false;
    uint64_t buffer = 0;  // identity of the memory: a VkBuffer, or 0 where `begin` is an address
    uint64_t begin = 0;   // byte offset, or address
    uint64_t size = 0;    // bytes
};

// Bindings whose elements are smaller than a 32-bit word.
struct NarrowBindings {
    BindingMask two_bytes = 0;  // floats of 16 bits
    BindingMask one_byte = 0;   // compressed keys and values
};

struct BindingRules {
    uint64_t alignment;     // every range begins at a multiple; 0: by element, 4 bytes where it is not narrow
    bool in_place;          // Y may be exactly X
    NarrowBindings narrow;  // only for alignment 0
    bool host_memory;       // ranges are FoveaHostBuffers: messages name `data` and `size_bytes`
    uint64_t most_bytes = SIZE_MAX;  // limit of one range of host memory
};

// The slices that one run asks for, [first, first + count) or all from `first` on where count is 0, as
// [first, end).
FoveaResult check_slices(uint64_t first, uint64_t count, uint64_t slices_of_plan, uint64_t& end,
                         FoveaDiag* diag);

// No list of bindings is longer; beyond it the count is garbage, and is not believed.
constexpr uint32_t kMaxBindings = 256;
FoveaResult check_binding_count(uint32_t count, FoveaDiag* diag);
// True if a run may take a binding with this index.
bool is_named_binding(uint32_t index);
// The error for any other binding that was given.
FoveaResult unknown_binding(uint32_t index, FoveaDiag* diag);

// ranges[FOVEA_BIND_WORKSPACE] is the workspace.
FoveaResult check_bindings(const FoveaPlanInfo& info, const BindingRules& rules,
                           const BindingRange (&ranges)[FOVEA_BIND_COUNT], FoveaDiag* diag);

}  // namespace fovea
