#include "gpu/swapchain.hpp"

#include "gpu/offscreen_frame.hpp"

#include <algorithm>

namespace fovea::visualizer {

Result<std::unique_ptr<Swapchain>> Swapchain::create(GpuDevice& device, VkSurfaceKHR surface) {
    std::unique_ptr<Swapchain> s(new Swapchain(device));
    s->surface_ = surface;
    VkBool32 can_present = VK_FALSE;
    vkGetPhysicalDeviceSurfaceSupportKHR(device.physical(), device.queue_family(), surface, &can_present);
    if (!can_present)
        return Error{FOVEA_UNSUPPORTED, "surface",
                     device.name() + " cannot show this window; choose another --device"};
    uint32_t count = 0;
    vkGetPhysicalDeviceSurfaceFormatsKHR(device.physical(), surface, &count, nullptr);
    std::vector<VkSurfaceFormatKHR> formats(count);
    vkGetPhysicalDeviceSurfaceFormatsKHR(device.physical(), surface, &count, formats.data());
    if (formats.empty()) return Error{FOVEA_UNSUPPORTED, "surface", "the window has no color format"};
    s->format_ = formats[0];
    // ImGui blends in the display's own encoding.
    for (const VkSurfaceFormatKHR& f : formats)
        if (f.format == VK_FORMAT_B8G8R8A8_UNORM || f.format == VK_FORMAT_R8G8B8A8_UNORM) s->format_ = f;
    const Result<VkRenderPass> pass =
        create_render_pass(device.device(), s->format_.format, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR);
    if (!pass) return pass.error();
    s->render_pass_ = *pass;
    if (Result<void> r = s->create_frames(); !r) return r.error();
    if (Result<bool> r = s->rebuild(); !r) return r.error();
    return s;
}

Swapchain::~Swapchain() {
    vkDeviceWaitIdle(device_.device());
    destroy_images();
    for (const Frame& f : frames_) {
        vkDestroyCommandPool(device_.device(), f.pool, nullptr);
        vkDestroySemaphore(device_.device(), f.acquired, nullptr);
        vkDestroyFence(device_.device(), f.done, nullptr);
    }
    vkDestroySwapchainKHR(device_.device(), swapchain_, nullptr);
    vkDestroyRenderPass(device_.device(), render_pass_, nullptr);
    vkDestroySurfaceKHR(device_.instance(), surface_, nullptr);
}

Result<void> Swapchain::create_frames() {
    for (Frame& f : frames_) {
        VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        pool.queueFamilyIndex = device_.queue_family();
        if (VkResult r = vkCreateCommandPool(device_.device(), &pool, nullptr, &f.pool))
            return vulkan_error("vkCreateCommandPool", r);
        VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = f.pool;
        allocate.commandBufferCount = 1;
        if (VkResult r = vkAllocateCommandBuffers(device_.device(), &allocate, &f.cmd))
            return vulkan_error("vkAllocateCommandBuffers", r);
        VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
        if (VkResult r = vkCreateSemaphore(device_.device(), &semaphore, nullptr, &f.acquired))
            return vulkan_error("vkCreateSemaphore", r);
        VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
        fence.flags = VK_FENCE_CREATE_SIGNALED_BIT;
        if (VkResult r = vkCreateFence(device_.device(), &fence, nullptr, &f.done))
            return vulkan_error("vkCreateFence", r);
    }
    return {};
}

void Swapchain::destroy_images() {
    for (const Image& image : images_) {
        vkDestroyFramebuffer(device_.device(), image.framebuffer, nullptr);
        vkDestroyImageView(device_.device(), image.view, nullptr);
        vkDestroySemaphore(device_.device(), image.drawn, nullptr);
    }
    images_.clear();
}

Result<bool> Swapchain::rebuild() {
    vkDeviceWaitIdle(device_.device());
    VkSurfaceCapabilitiesKHR can{};
    if (VkResult r = vkGetPhysicalDeviceSurfaceCapabilitiesKHR(device_.physical(), surface_, &can))
        return vulkan_error("vkGetPhysicalDeviceSurfaceCapabilitiesKHR", r);
    if (can.currentExtent.width == 0 || can.currentExtent.height == 0) return false;
    destroy_images();
    VkSwapchainCreateInfoKHR info{VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
    info.surface = surface_;
    info.minImageCount = std::max(2u, can.minImageCount);
    info.imageFormat = format_.format;
    info.imageColorSpace = format_.colorSpace;
    info.imageExtent = can.currentExtent;
    info.imageArrayLayers = 1;
    info.imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
    info.preTransform = can.currentTransform;
    info.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR;
    info.presentMode = VK_PRESENT_MODE_FIFO_KHR;
    info.clipped = VK_TRUE;
    info.oldSwapchain = swapchain_;
    VkSwapchainKHR next = VK_NULL_HANDLE;
    const VkResult made = vkCreateSwapchainKHR(device_.device(), &info, nullptr, &next);
    vkDestroySwapchainKHR(device_.device(), swapchain_, nullptr);
    swapchain_ = next;
    if (made != VK_SUCCESS) return vulkan_error("vkCreateSwapchainKHR", made);
    extent_ = can.currentExtent;
    uint32_t count = 0;
    vkGetSwapchainImagesKHR(device_.device(), swapchain_, &count, nullptr);
    std::vector<VkImage> handles(count);
    vkGetSwapchainImagesKHR(device_.device(), swapchain_, &count, handles.data());
    for (const VkImage handle : handles) {
        Image& image = images_.emplace_back(Image{});
        VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
        view.image = handle;
        view.viewType = VK_IMAGE_VIEW_TYPE_2D;
        view.format = format_.format;
        view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
        if (VkResult r = vkCreateImageView(device_.device(), &view, nullptr, &image.view))
            return vulkan_error("vkCreateImageView", r);
        VkFramebufferCreateInfo framebuffer{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
        framebuffer.renderPass = render_pass_;
        framebuffer.attachmentCount = 1;
        framebuffer.pAttachments = &image.view;
        framebuffer.width = extent_.width;
        framebuffer.height = extent_.height;
        framebuffer.layers = 1;
        if (VkResult r = vkCreateFramebuffer(device_.device(), &framebuffer, nullptr, &image.framebuffer))
            return vulkan_error("vkCreateFramebuffer", r);
        VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
        if (VkResult r = vkCreateSemaphore(device_.device(), &semaphore, nullptr, &image.drawn))
            return vulkan_error("vkCreateSemaphore", r);
    }
    return true;
}

Result<VkCommandBuffer> Swapchain::begin_frame() {
    const Frame& f = frames_[frame_];
    if (VkResult r = vkWaitForFences(device_.device(), 1, &f.done, VK_TRUE, device_.wait_nanoseconds()))
        return vulkan_error("vkWaitForFences", r);
    const VkResult acquired = vkAcquireNextImageKHR(device_.device(), swapchain_, device_.wait_nanoseconds(),
                                                    f.acquired, VK_NULL_HANDLE, &image_);
    if (acquired == VK_ERROR_OUT_OF_DATE_KHR) return VkCommandBuffer(VK_NULL_HANDLE);
    if (acquired != VK_SUCCESS && acquired != VK_SUBOPTIMAL_KHR)
        return vulkan_error("vkAcquireNextImageKHR", acquired);
    vkResetFences(device_.device(), 1, &f.done);
    vkResetCommandPool(device_.device(), f.pool, 0);
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    if (VkResult r = vkBeginCommandBuffer(f.cmd, &begin)) return vulkan_error("vkBeginCommandBuffer", r);
    return f.cmd;
}

void Swapchain::begin_pass(VkCommandBuffer cmd, const float (&clear_rgb)[3]) const {
    VkClearValue clear{};
    clear.color = {{clear_rgb[0], clear_rgb[1], clear_rgb[2], 1}};
    VkRenderPassBeginInfo info{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
    info.renderPass = render_pass_;
    info.framebuffer = images_[image_].framebuffer;
    info.renderArea.extent = extent_;
    info.clearValueCount = 1;
    info.pClearValues = &clear;
    vkCmdBeginRenderPass(cmd, &info, VK_SUBPASS_CONTENTS_INLINE);
}

Result<bool> Swapchain::end_frame(VkCommandBuffer cmd) {
    vkCmdEndRenderPass(cmd);
    const Frame& f = frames_[frame_];
    if (VkResult r = vkEndCommandBuffer(cmd)) return vulkan_error("vkEndCommandBuffer", r);
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT;
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.waitSemaphoreCount = submit.commandBufferCount = submit.signalSemaphoreCount = 1;
    submit.pWaitSemaphores = &f.acquired;
    submit.pWaitDstStageMask = &stage;
    submit.pCommandBuffers = &cmd;
    submit.pSignalSemaphores = &images_[image_].drawn;
    if (VkResult r = vkQueueSubmit(device_.queue(), 1, &submit, f.done))
        return vulkan_error("vkQueueSubmit", r);
    VkPresentInfoKHR present{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
    present.waitSemaphoreCount = present.swapchainCount = 1;
    present.pWaitSemaphores = &images_[image_].drawn;
    present.pSwapchains = &swapchain_;
    present.pImageIndices = &image_;
    const VkResult shown = vkQueuePresentKHR(device_.queue(), &present);
    frame_ = (frame_ + 1) % uint32_t(frames_.size());
    if (shown == VK_ERROR_OUT_OF_DATE_KHR || shown == VK_SUBOPTIMAL_KHR) return false;
    if (shown != VK_SUCCESS) return vulkan_error("vkQueuePresentKHR", shown);
    return true;
}

}  // namespace fovea::visualizer
