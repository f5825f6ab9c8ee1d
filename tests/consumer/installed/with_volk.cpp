// A host that loads Vulkan with volk.
#include <volk.h>

#define CALL(function) function
#define LOAD_INSTANCE(instance) volkLoadInstance(instance)
#define DESTROY_DEVICE(device) vkDestroyDevice(device, nullptr)
#include "adopt.hpp"

int main() {
    if (volkInitialize() != VK_SUCCESS) return std::puts("no Vulkan loader"), 1;
    return adopt(vkGetInstanceProcAddr);
}
