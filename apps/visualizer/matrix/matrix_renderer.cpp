#include "matrix/matrix_renderer.hpp"

#include "visualizer_shaders.hpp"

#include <fovea/inspect/colormap.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fovea::visualizer {
namespace {

constexpr uint32_t kMaxSets = 1024;

Result<VkShaderModule> shader_module(VkDevice device, const uint32_t* words, size_t count) {
    VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    info.codeSize = count * 4;
    info.pCode = words;
    VkShaderModule module = VK_NULL_HANDLE;
    if (VkResult r = vkCreateShaderModule(device, &info, nullptr, &module))
        return vulkan_error("vkCreateShaderModule", r);
    return module;
}

}  // namespace

Result<std::unique_ptr<MatrixRenderer>> MatrixRenderer::create(GpuDevice& device, VkRenderPass render_pass) {
    std::unique_ptr<MatrixRenderer> renderer(new MatrixRenderer(device));
    if (device.has_vulkan()) {
        if (Result<void> r = renderer->create_layouts(); !r) return r.error();
        if (Result<void> r = renderer->create_pipeline(render_pass); !r) return r.error();
    }
    if (Result<void> r = renderer->create_colors(); !r) return r.error();
    return renderer;
}

MatrixRenderer::~MatrixRenderer() {
    if (!device_.has_vulkan()) return;
    vkDestroyPipeline(device_.device(), pipeline_, nullptr);
    vkDestroyPipelineLayout(device_.device(), layout_, nullptr);
    vkDestroyDescriptorSetLayout(device_.device(), set_layout_, nullptr);
    vkDestroyDescriptorPool(device_.device(), pool_, nullptr);
}

Result<void> MatrixRenderer::create_layouts() {
    VkDescriptorSetLayoutBinding bindings[MATRIX_BINDING_COUNT] = {};
    for (uint32_t i = 0; i < MATRIX_BINDING_COUNT; ++i) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_FRAGMENT_BIT;
    }
    VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = MATRIX_BINDING_COUNT;
    set.pBindings = bindings;
    if (VkResult r = vkCreateDescriptorSetLayout(device_.device(), &set, nullptr, &set_layout_))
        return vulkan_error("vkCreateDescriptorSetLayout", r);
    const VkPushConstantRange push{VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                                   sizeof(MatrixView)};
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &set_layout_;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &push;
    if (VkResult r = vkCreatePipelineLayout(device_.device(), &layout, nullptr, &layout_))
        return vulkan_error("vkCreatePipelineLayout", r);
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, MATRIX_BINDING_COUNT * kMaxSets};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT;
    pool.maxSets = kMaxSets;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    if (VkResult r = vkCreateDescriptorPool(device_.device(), &pool, nullptr, &pool_))
        return vulkan_error("vkCreateDescriptorPool", r);
    return {};
}

Result<void> MatrixRenderer::create_pipeline(VkRenderPass render_pass) {
    const Result<VkShaderModule> vertex =
        shader_module(device_.device(), kMatrixVertexWords, kMatrixVertexWordCount);
    if (!vertex) return vertex.error();
    const Result<VkShaderModule> fragment =
        shader_module(device_.device(), kMatrixFragmentWords, kMatrixFragmentWordCount);
    if (!fragment) {
        vkDestroyShaderModule(device_.device(), *vertex, nullptr);
        return fragment.error();
    }
    VkPipelineShaderStageCreateInfo stages[2] = {};
    for (int i = 0; i < 2; ++i) {
        stages[i].sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        stages[i].stage = i == 0 ? VK_SHADER_STAGE_VERTEX_BIT : VK_SHADER_STAGE_FRAGMENT_BIT;
        stages[i].module = i == 0 ? *vertex : *fragment;
        stages[i].pName = "main";
    }
    VkPipelineVertexInputStateCreateInfo no_vertices{
        VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
    VkPipelineInputAssemblyStateCreateInfo strip{VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO};
    strip.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP;
    VkPipelineViewportStateCreateInfo viewport{VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO};
    viewport.viewportCount = viewport.scissorCount = 1;
    VkPipelineRasterizationStateCreateInfo raster{VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO};
    raster.lineWidth = 1;
    VkPipelineMultisampleStateCreateInfo samples{VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO};
    samples.rasterizationSamples = VK_SAMPLE_COUNT_1_BIT;
    VkPipelineColorBlendAttachmentState opaque{};
    opaque.colorWriteMask = 0xf;
    VkPipelineColorBlendStateCreateInfo blend{VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO};
    blend.attachmentCount = 1;
    blend.pAttachments = &opaque;
    const VkDynamicState dynamic_states[2] = {VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
    VkPipelineDynamicStateCreateInfo dynamic{VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO};
    dynamic.dynamicStateCount = 2;
    dynamic.pDynamicStates = dynamic_states;
    VkGraphicsPipelineCreateInfo info{VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO};
    info.stageCount = 2;
    info.pStages = stages;
    info.pVertexInputState = &no_vertices;
    info.pInputAssemblyState = &strip;
    info.pViewportState = &viewport;
    info.pRasterizationState = &raster;
    info.pMultisampleState = &samples;
    info.pColorBlendState = &blend;
    info.pDynamicState = &dynamic;
    info.layout = layout_;
    info.renderPass = render_pass;
    const VkResult r =
        vkCreateGraphicsPipelines(device_.device(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_);
    vkDestroyShaderModule(device_.device(), *vertex, nullptr);
    vkDestroyShaderModule(device_.device(), *fragment, nullptr);
    if (r != VK_SUCCESS) return vulkan_error("vkCreateGraphicsPipelines", r);
    return {};
}

Result<void> MatrixRenderer::create_colors() {
    Result<GpuBuffer> buffer = GpuBuffer::create(device_, kColormaps.size() * MATRIX_COLORS_PER_MAP * 4);
    if (!buffer) return buffer.error();
    colors_ = std::move(*buffer);
    std::vector<uint32_t> colors;
    for (const Colormap map : kColormaps)
        for (const Rgb c : color_table(map)) colors.push_back(IM_COL32(c.r, c.g, c.b, 255));
    std::memcpy(colors_.data(), colors.data(), colors.size() * 4);
    colors_.flush();
    return {};
}

void MatrixRenderer::begin_frame(VkCommandBuffer cmd, VkExtent2D extent) {
    requests_.clear();
    cmd_ = cmd;
    extent_ = extent;
}

VkDescriptorSet MatrixRenderer::set_of(const GpuBuffer& values, const GpuBuffer& hiding,
                                       const GpuBuffer& other) {
    const std::array<VkBuffer, 3> key = {values.handle(), hiding.handle(), other.handle()};
    if (const auto found = sets_.find(key); found != sets_.end()) return found->second;
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    VkDescriptorSet set = VK_NULL_HANDLE;
    if (vkAllocateDescriptorSets(device_.device(), &allocate, &set) != VK_SUCCESS) return VK_NULL_HANDLE;
    const GpuBuffer* buffers[MATRIX_BINDING_COUNT] = {};
    buffers[MATRIX_BINDING_VALUES] = &values;
    buffers[MATRIX_BINDING_COLORS] = &colors_;
    buffers[MATRIX_BINDING_HIDING] = &hiding;
    buffers[MATRIX_BINDING_OTHER] = &other;
    VkDescriptorBufferInfo infos[MATRIX_BINDING_COUNT];
    VkWriteDescriptorSet writes[MATRIX_BINDING_COUNT] = {};
    for (uint32_t i = 0; i < MATRIX_BINDING_COUNT; ++i) {
        infos[i] = {buffers[i]->handle(), 0, buffers[i]->size_bytes()};
        writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        writes[i].dstSet = set;
        writes[i].dstBinding = i;
        writes[i].descriptorCount = 1;
        writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        writes[i].pBufferInfo = &infos[i];
    }
    vkUpdateDescriptorSets(device_.device(), MATRIX_BINDING_COUNT, writes, 0, nullptr);
    sets_.emplace(key, set);
    return set;
}

void MatrixRenderer::forget(VkBuffer buffer) {
    for (auto at = sets_.begin(); at != sets_.end();) {
        if (std::find(at->first.begin(), at->first.end(), buffer) == at->first.end()) {
            ++at;
            continue;
        }
        vkFreeDescriptorSets(device_.device(), pool_, 1, &at->second);
        at = sets_.erase(at);
    }
}

void MatrixRenderer::add(ImDrawList& list, const GpuBuffer& values, const MatrixView& view,
                         const GpuBuffer* hiding, const GpuBuffer* other) {
    if (view.rows == 0 || view.columns == 0) return;
    Request request{this, VK_NULL_HANDLE, view, &values, hiding ? hiding : &values, other ? other : &values};
    if (device_.has_vulkan()) {
        request.set = set_of(values, *request.hiding, *request.other);
        if (!request.set) return;
    }
    requests_.push_back(request);
    Request& kept = requests_.back();
    kept.view.target_width = float(extent_.width);
    kept.view.target_height = float(extent_.height);
    list.AddCallback(draw_callback, &kept);
    list.AddCallback(ImDrawCallback_ResetRenderState, nullptr);
}

bool MatrixRenderer::paint(const ImDrawCmd& command, const PaintTarget& target) {
    if (command.UserCallback != draw_callback) return false;
    const auto& request = *static_cast<const Request*>(command.UserCallbackData);
    const auto floats = [](const GpuBuffer& b) { return reinterpret_cast<const float*>(b.data()); };
    paint_matrix(request.view,
                 {floats(*request.values), floats(*request.hiding), floats(*request.other),
                  reinterpret_cast<const uint32_t*>(request.renderer->colors_.data())},
                 target);
    return true;
}

void MatrixRenderer::draw_callback(const ImDrawList*, const ImDrawCmd* command) {
    const auto& request = *static_cast<const Request*>(command->UserCallbackData);
    const MatrixRenderer& self = *request.renderer;
    const ImGuiIO& io = ImGui::GetIO();
    // ImGui clips in its own units and leaves the scissor to the callback.
    const ImVec4 clip = command->ClipRect;
    const float sx = io.DisplayFramebufferScale.x, sy = io.DisplayFramebufferScale.y;
    const float left = std::clamp(std::max(clip.x * sx, request.view.left), 0.0f, float(self.extent_.width));
    const float top = std::clamp(std::max(clip.y * sy, request.view.top), 0.0f, float(self.extent_.height));
    const float right = std::clamp(std::min(clip.z * sx, request.view.left + request.view.width), left,
                                   float(self.extent_.width));
    const float bottom = std::clamp(std::min(clip.w * sy, request.view.top + request.view.height), top,
                                    float(self.extent_.height));
    if (right - left < 1 || bottom - top < 1) return;
    const VkViewport viewport{0, 0, float(self.extent_.width), float(self.extent_.height), 0, 1};
    // Out to whole pixels: pictures side by side leave no seam.
    const float x0 = std::floor(left), y0 = std::floor(top);
    const VkRect2D scissor{{int32_t(x0), int32_t(y0)},
                           {uint32_t(std::ceil(right) - x0), uint32_t(std::ceil(bottom) - y0)}};
    vkCmdBindPipeline(self.cmd_, VK_PIPELINE_BIND_POINT_GRAPHICS, self.pipeline_);
    vkCmdSetViewport(self.cmd_, 0, 1, &viewport);
    vkCmdSetScissor(self.cmd_, 0, 1, &scissor);
    vkCmdBindDescriptorSets(self.cmd_, VK_PIPELINE_BIND_POINT_GRAPHICS, self.layout_, 0, 1, &request.set, 0,
                            nullptr);
    vkCmdPushConstants(self.cmd_, self.layout_, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                       sizeof(MatrixView), &request.view);
    vkCmdDraw(self.cmd_, 4, 1, 0, 0);
}

}  // namespace fovea::visualizer
