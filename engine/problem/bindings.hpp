// The buffers of one run, checked before anything is written or recorded: present, large enough, aligned, and
// no output overlapping anything else. Shared by the CPU backend (addresses) and the Vulkan recorder (buffers
// and offsets).
#pragma once

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea {

constexpr uint32_t kBindWorkspace = FOVEA_BIND_COUNT;  // the workspace's place behind the named bindings

// "Q", "BATCH_TABLE", "workspace".
const char* binding_name(uint32_t binding);

struct BindingRange {
    bool given = false;
    uint64_t buffer = 0;  // identity of the memory: a VkBuffer, or 0 where `begin` is an address
    uint64_t begin = 0;   // byte offset, or address
    uint64_t size = 0;    // bytes
};

struct BindingRules {
    uint64_t alignment;  // every range begins at a multiple; 0: by element, at least 4 (2 for f16 tensors)
    bool in_place;       // Y may be exactly X
    uint32_t f16_mask;   // bit i: binding i holds f16 (only for alignment 0)
};

// ranges[FOVEA_BIND_COUNT] is the workspace.
FoveaResult check_bindings(const FoveaPlanInfo& info, const BindingRules& rules,
                           const BindingRange (&ranges)[FOVEA_BIND_COUNT + 1], FoveaDiag* diag);

}  // namespace fovea
