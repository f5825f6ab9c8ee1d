// Checks every range of a buffer that a dispatch binds.
#pragma once

#include <fovea/fovea.h>
#include <gtest/gtest.h>

namespace fovea::test {

inline void expect_windows_within(const FoveaDispatch& d, const FoveaPlanInfo& info,
                                  const FoveaDeviceProperties& properties) {
    for (uint32_t i = 0; i < d.binding_count; ++i) {
        const FoveaDispatchBinding& b = d.bindings[i];
        const uint64_t bytes =
            b.source == FOVEA_BIND_WORKSPACE ? info.workspace_bytes : info.binding_bytes[b.source];
        EXPECT_EQ(b.offset % properties.storage_offset_alignment, 0u);
        EXPECT_GT(b.size, 0u);
        EXPECT_LE(b.size, properties.max_storage_range);
        EXPECT_LE(b.offset + b.size, bytes) << "slot " << b.slot << " of " << foveaShaderName(d.shader);
        if (b.source == FOVEA_BIND_WORKSPACE) continue;
        EXPECT_EQ(b.written != 0, (info.output_mask >> b.source & 1) != 0) << "slot " << b.slot;
    }
    for (int i = 0; i < 3; ++i) {
        EXPECT_GE(d.groups[i], 1u);
        EXPECT_LE(d.groups[i], properties.max_workgroup_count[i]);
    }
}

}  // namespace fovea::test
