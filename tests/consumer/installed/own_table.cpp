// An application with its own functions in a namespace, which it loads itself: names like vkCreateInstance
// are not declared here.
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <dlfcn.h>

namespace engine::gfx {
PFN_vkGetInstanceProcAddr get;
PFN_vkCreateInstance vkCreateInstance;
PFN_vkDestroyInstance vkDestroyInstance;
PFN_vkEnumeratePhysicalDevices vkEnumeratePhysicalDevices;
PFN_vkCreateDevice vkCreateDevice;

template <class Function>
void load(VkInstance instance, Function& out, const char* name) {
    out = reinterpret_cast<Function>(get(instance, name));
}
void load_instance(VkInstance instance) {
    load(instance, vkDestroyInstance, "vkDestroyInstance");
    load(instance, vkEnumeratePhysicalDevices, "vkEnumeratePhysicalDevices");
    load(instance, vkCreateDevice, "vkCreateDevice");
}
void destroy_device(VkInstance instance, VkDevice device) {
    PFN_vkDestroyDevice destroy;
    load(instance, destroy, "vkDestroyDevice");
    destroy(device, nullptr);
}
}  // namespace engine::gfx

#define CALL(function) engine::gfx::function
#define LOAD_INSTANCE(instance) engine::gfx::load_instance(instance)
#define DESTROY_DEVICE(device) engine::gfx::destroy_device(instance, device)
#include "adopt.hpp"

int main() {
    void* loader = dlopen("libvulkan.so.1", RTLD_NOW);
    if (!loader) return std::puts("no Vulkan loader"), 1;
    engine::gfx::get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
    engine::gfx::load(nullptr, engine::gfx::vkCreateInstance, "vkCreateInstance");
    return adopt(engine::gfx::get);
}
