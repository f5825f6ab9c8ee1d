// How the Vulkan backend cuts its work.
#pragma once

#include <cstdint>

namespace fovea {

struct VulkanPlan {
    uint32_t unused;
};

}  // namespace fovea
