#include "canvas.hpp"

#include <fovea/files.hpp>

#include <algorithm>
#include <cstring>

namespace embed {
namespace {

void cmd_layout(VkCommandBuffer cmd, VkImage image, VkImageLayout from, VkImageLayout to) {
    const VkImageMemoryBarrier2 barrier{
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2,
        .srcStageMask = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT,
        .srcAccessMask = VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT,
        .dstStageMask = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT | VK_PIPELINE_STAGE_2_COPY_BIT,
        .dstAccessMask = VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_2_TRANSFER_READ_BIT,
        .oldLayout = from,
        .newLayout = to,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = image,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
    const VkDependencyInfo info{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                .imageMemoryBarrierCount = 1,
                                .pImageMemoryBarriers = &barrier};
    vkCmdPipelineBarrier2(cmd, &info);
}

VkSemaphore make_semaphore(VkDevice device) {
    const VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    VkSemaphore made;
    check(vkCreateSemaphore(device, &create, nullptr, &made), "no semaphore");
    return made;
}

}  // namespace

Canvas::Canvas(const Gpu& gpu, VkExtent2D extent)
    : gpu_(gpu), extent_(extent), image_(gpu.color_image(extent, format_)) {}

Canvas::Canvas(const Gpu& gpu, VkSurfaceKHR surface, VkExtent2D extent)
    : gpu_(gpu), extent_(extent), surface_(surface) {
    VkBool32 shows = VK_FALSE;
    vkGetPhysicalDeviceSurfaceSupportKHR(gpu.physical, gpu.queue_family, surface, &shows);
    require(shows, "this device cannot show the window");
    uint32_t count = 64;
    VkSurfaceFormatKHR formats[64];
    vkGetPhysicalDeviceSurfaceFormatsKHR(gpu.physical, surface, &count, formats);
    require(count > 0, "the window has no color format");
    format_ = formats[0].format;
    for (uint32_t i = 0; i < count; ++i)
        if (formats[i].format == VK_FORMAT_B8G8R8A8_UNORM) format_ = formats[i].format;
    for (VkSemaphore& s : acquired_) s = make_semaphore(gpu.device);
    rebuild();
}

Canvas::~Canvas() {
    destroy_views();
    for (const VkSemaphore s : acquired_) vkDestroySemaphore(gpu_.device, s, nullptr);
    if (swapchain_) vkDestroySwapchainKHR(gpu_.device, swapchain_, nullptr);
    if (surface_) vkDestroySurfaceKHR(gpu_.instance, surface_, nullptr);
    if (image_.handle) gpu_.destroy(image_);
}

void Canvas::destroy_views() {
    for (const Image& image : images_) vkDestroyImageView(gpu_.device, image.view, nullptr);
    for (const VkSemaphore s : drawn_) vkDestroySemaphore(gpu_.device, s, nullptr);
    images_.clear();
    drawn_.clear();
}

void Canvas::rebuild() {
    vkDeviceWaitIdle(gpu_.device);
    VkSurfaceCapabilitiesKHR can;
    check(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(gpu_.physical, surface_, &can), "the window is gone");
    if (can.currentExtent.width != UINT32_MAX) extent_ = can.currentExtent;
    if (extent_.width == 0 || extent_.height == 0) return;
    destroy_views();
    const VkSwapchainCreateInfoKHR create{.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
                                          .surface = surface_,
                                          .minImageCount = std::max(2u, can.minImageCount),
                                          .imageFormat = format_,
                                          .imageColorSpace = VK_COLOR_SPACE_SRGB_NONLINEAR_KHR,
                                          .imageExtent = extent_,
                                          .imageArrayLayers = 1,
                                          .imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT,
                                          .preTransform = can.currentTransform,
                                          .compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR,
                                          .presentMode = VK_PRESENT_MODE_FIFO_KHR,
                                          .clipped = VK_TRUE,
                                          .oldSwapchain = swapchain_};
    VkSwapchainKHR made;
    check(vkCreateSwapchainKHR(gpu_.device, &create, nullptr, &made), "no swapchain");
    if (swapchain_) vkDestroySwapchainKHR(gpu_.device, swapchain_, nullptr);
    swapchain_ = made;
    uint32_t count = 0;
    vkGetSwapchainImagesKHR(gpu_.device, swapchain_, &count, nullptr);
    std::vector<VkImage> handles(count);
    vkGetSwapchainImagesKHR(gpu_.device, swapchain_, &count, handles.data());
    for (const VkImage handle : handles) {
        images_.push_back({handle, gpu_.view(handle, format_), nullptr});
        drawn_.push_back(make_semaphore(gpu_.device));
    }
}

bool Canvas::begin(uint32_t frame) {
    if (!surface_) return true;
    const VkResult result = images_.empty()
                                ? VK_ERROR_OUT_OF_DATE_KHR
                                : vkAcquireNextImageKHR(gpu_.device, swapchain_, UINT64_MAX, acquired_[frame],
                                                        VK_NULL_HANDLE, &current_);
    if (result == VK_ERROR_OUT_OF_DATE_KHR) {
        rebuild();
        return false;
    }
    check(result, "no image to draw on");
    return true;
}

void Canvas::cmd_begin_rendering(VkCommandBuffer cmd) const {
    const Image& image = surface_ ? images_[current_] : image_;
    cmd_layout(cmd, image.handle, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL);
    const VkRenderingAttachmentInfo color{.sType = VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO,
                                          .imageView = image.view,
                                          .imageLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
                                          .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
                                          .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
                                          .clearValue = {{{0.05f, 0.06f, 0.09f, 1}}}};
    const VkRenderingInfo info{.sType = VK_STRUCTURE_TYPE_RENDERING_INFO,
                               .renderArea = {{0, 0}, extent_},
                               .layerCount = 1,
                               .colorAttachmentCount = 1,
                               .pColorAttachments = &color};
    vkCmdBeginRendering(cmd, &info);
    const uint32_t side = std::min(extent_.width, extent_.height);
    const VkViewport viewport{(float(extent_.width) - float(side)) / 2,
                              (float(extent_.height) - float(side)) / 2,
                              float(side),
                              float(side),
                              0,
                              1};
    const VkRect2D scissor{{0, 0}, extent_};
    vkCmdSetViewport(cmd, 0, 1, &viewport);
    vkCmdSetScissor(cmd, 0, 1, &scissor);
}

void Canvas::cmd_end_rendering(VkCommandBuffer cmd) const {
    vkCmdEndRendering(cmd);
    cmd_layout(cmd, surface_ ? images_[current_].handle : image_.handle,
               VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
               surface_ ? VK_IMAGE_LAYOUT_PRESENT_SRC_KHR : VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
}

void Canvas::present() {
    if (!surface_) return;
    const VkPresentInfoKHR info{.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR,
                                .waitSemaphoreCount = 1,
                                .pWaitSemaphores = &drawn_[current_],
                                .swapchainCount = 1,
                                .pSwapchains = &swapchain_,
                                .pImageIndices = &current_};
    const VkResult result = vkQueuePresentKHR(gpu_.queue, &info);
    if (result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_SUBOPTIMAL_KHR)
        rebuild();
    else
        check(result, "the frame could not be shown");
}

void Canvas::save(const std::string& png_file, VkCommandPool commands) const {
    require(!surface_, "only a frame without a window is saved");
    const Buffer pixels = gpu_.buffer(uint64_t{4} * extent_.width * extent_.height, true);
    const VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                               .commandPool = commands,
                                               .commandBufferCount = 1};
    VkCommandBuffer cmd;
    check(vkAllocateCommandBuffers(gpu_.device, &allocate, &cmd), "no command buffer");
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    vkBeginCommandBuffer(cmd, &begin);
    const VkBufferImageCopy copy{.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                 .imageExtent = {extent_.width, extent_.height, 1}};
    vkCmdCopyImageToBuffer(cmd, image_.handle, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, pixels.handle, 1, &copy);
    const VkMemoryBarrier2 to_host{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                   .srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT,
                                   .srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT,
                                   .dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT,
                                   .dstAccessMask = VK_ACCESS_2_HOST_READ_BIT};
    const VkDependencyInfo dependency{
        .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &to_host};
    vkCmdPipelineBarrier2(cmd, &dependency);
    vkEndCommandBuffer(cmd);
    const VkSubmitInfo submit{
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &cmd};
    check(vkQueueSubmit(gpu_.queue, 1, &submit, VK_NULL_HANDLE), "the submission failed");
    check(vkQueueWaitIdle(gpu_.queue), "the device did not finish");
    const fovea::Result<fovea::Tensor> picture =
        fovea::make_tensor("picture", FOVEA_U8, {extent_.height, extent_.width, 4},
                           {static_cast<const std::byte*>(pixels.mapped), pixels.size});
    require(picture.has_value(), "no memory for the picture");
    const fovea::Result<uint64_t> saved = fovea::save_png(png_file, *picture);
    require(saved.has_value(), saved ? "" : saved.error().text.c_str());
    gpu_.destroy(pixels);
}

}  // namespace embed
