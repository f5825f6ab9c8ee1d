#include "gpu/offscreen_frame.hpp"

#include <cstring>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr VkFormat kFormat = VK_FORMAT_R8G8B8A8_UNORM;

}  // namespace

Result<VkRenderPass> create_render_pass(VkDevice device, VkFormat format, VkImageLayout final_layout) {
    VkAttachmentDescription attachment{};
    attachment.format = format;
    attachment.samples = VK_SAMPLE_COUNT_1_BIT;
    attachment.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
    attachment.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
    attachment.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
    attachment.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
    attachment.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
    attachment.finalLayout = final_layout;
    const VkAttachmentReference reference{0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
    VkSubpassDescription subpass{};
    subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
    subpass.colorAttachmentCount = 1;
    subpass.pColorAttachments = &reference;
    // Before: the image may still be presented or copied; the fragment shader reads what compute wrote.
    // After: it is copied or presented.
    const VkSubpassDependency dependencies[2] = {
        {VK_SUBPASS_EXTERNAL, 0,
         VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT |
             VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
         VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT | VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT,
         VK_ACCESS_SHADER_WRITE_BIT,
         VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT |
             VK_ACCESS_SHADER_READ_BIT,
         0},
        {0, VK_SUBPASS_EXTERNAL, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
         VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
         VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT, 0}};
    VkRenderPassCreateInfo info{VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO};
    info.attachmentCount = 1;
    info.pAttachments = &attachment;
    info.subpassCount = 1;
    info.pSubpasses = &subpass;
    info.dependencyCount = 2;
    info.pDependencies = dependencies;
    VkRenderPass pass = VK_NULL_HANDLE;
    if (VkResult r = vkCreateRenderPass(device, &info, nullptr, &pass))
        return vulkan_error("vkCreateRenderPass", r);
    return pass;
}

Result<OffscreenFrame> OffscreenFrame::create(GpuDevice& device, uint32_t width, uint32_t height) {
    OffscreenFrame f;
    f.device_ = &device;
    f.extent_ = {width, height};
    VkImageCreateInfo image{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    image.imageType = VK_IMAGE_TYPE_2D;
    image.format = kFormat;
    image.extent = {width, height, 1};
    image.mipLevels = image.arrayLayers = 1;
    image.samples = VK_SAMPLE_COUNT_1_BIT;
    image.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
    VmaAllocationCreateInfo on_device{};
    on_device.usage = VMA_MEMORY_USAGE_AUTO;
    if (VkResult r =
            vmaCreateImage(device.allocator(), &image, &on_device, &f.image_, &f.image_memory_, nullptr))
        return vulkan_error("vmaCreateImage", r);
    VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    view.image = f.image_;
    view.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view.format = kFormat;
    view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    if (VkResult r = vkCreateImageView(device.device(), &view, nullptr, &f.view_))
        return vulkan_error("vkCreateImageView", r);
    const Result<VkRenderPass> pass =
        create_render_pass(device.device(), kFormat, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    if (!pass) return pass.error();
    f.render_pass_ = *pass;
    VkFramebufferCreateInfo framebuffer{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
    framebuffer.renderPass = f.render_pass_;
    framebuffer.attachmentCount = 1;
    framebuffer.pAttachments = &f.view_;
    framebuffer.width = width;
    framebuffer.height = height;
    framebuffer.layers = 1;
    if (VkResult r = vkCreateFramebuffer(device.device(), &framebuffer, nullptr, &f.framebuffer_))
        return vulkan_error("vkCreateFramebuffer", r);
    VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    buffer.size = uint64_t{width} * height * 4;
    buffer.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    VmaAllocationCreateInfo on_host{};
    on_host.usage = VMA_MEMORY_USAGE_AUTO;
    on_host.flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT;
    VmaAllocationInfo placed{};
    if (VkResult r = vmaCreateBuffer(device.allocator(), &buffer, &on_host, &f.readback_, &f.readback_memory_,
                                     &placed))
        return vulkan_error("vmaCreateBuffer", r);
    f.mapped_ = static_cast<std::byte*>(placed.pMappedData);
    return f;
}

OffscreenFrame::OffscreenFrame(OffscreenFrame&& o) noexcept
    : device_(std::exchange(o.device_, nullptr)),
      extent_(o.extent_),
      image_(o.image_),
      image_memory_(o.image_memory_),
      view_(o.view_),
      render_pass_(o.render_pass_),
      framebuffer_(o.framebuffer_),
      readback_(o.readback_),
      readback_memory_(o.readback_memory_),
      mapped_(o.mapped_) {}

OffscreenFrame::~OffscreenFrame() {
    if (!device_) return;
    vkDestroyFramebuffer(device_->device(), framebuffer_, nullptr);
    vkDestroyRenderPass(device_->device(), render_pass_, nullptr);
    vkDestroyImageView(device_->device(), view_, nullptr);
    if (image_) vmaDestroyImage(device_->allocator(), image_, image_memory_);
    if (readback_) vmaDestroyBuffer(device_->allocator(), readback_, readback_memory_);
}

void OffscreenFrame::begin(VkCommandBuffer cmd, const float (&clear_rgb)[3]) const {
    VkClearValue clear{};
    clear.color = {{clear_rgb[0], clear_rgb[1], clear_rgb[2], 1}};
    VkRenderPassBeginInfo info{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
    info.renderPass = render_pass_;
    info.framebuffer = framebuffer_;
    info.renderArea.extent = extent_;
    info.clearValueCount = 1;
    info.pClearValues = &clear;
    vkCmdBeginRenderPass(cmd, &info, VK_SUBPASS_CONTENTS_INLINE);
}

void OffscreenFrame::end(VkCommandBuffer cmd) const {
    vkCmdEndRenderPass(cmd);
    VkBufferImageCopy copy{};
    copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    copy.imageExtent = {extent_.width, extent_.height, 1};
    vkCmdCopyImageToBuffer(cmd, image_, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, readback_, 1, &copy);
    VkBufferMemoryBarrier barrier{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.buffer = readback_;
    barrier.size = VK_WHOLE_SIZE;
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 0, nullptr, 1,
                         &barrier, 0, nullptr);
}

std::vector<std::byte> OffscreenFrame::pixels() const {
    vmaInvalidateAllocation(device_->allocator(), readback_memory_, 0, VK_WHOLE_SIZE);
    return {mapped_, mapped_ + uint64_t{extent_.width} * extent_.height * 4};
}

}  // namespace fovea::visualizer
