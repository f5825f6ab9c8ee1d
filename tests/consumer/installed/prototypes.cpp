// A host that links libvulkan and calls its prototypes, with whatever Vulkan headers the system has.
#include <vulkan/vulkan.h>

#define CALL(function) function
#define LOAD_INSTANCE(instance) (void)instance
#define DESTROY_DEVICE(device) vkDestroyDevice(device, nullptr)
#include "adopt.hpp"

int main() { return adopt(vkGetInstanceProcAddr); }
