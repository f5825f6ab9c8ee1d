#include "vulkan/faulty_driver.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace fovea::test {
namespace {

enum : uint32_t {
    kOpExtInstImport = 11,
    kOpExtInst = 12,
    kOpTypeInt = 21,
    kOpTypeFloat = 22,
    kOpTypeVector = 23,
    kOpConstant = 43,
    kOpFunction = 54,
    kOpDecorate = 71
};

uint32_t head(uint32_t length, uint32_t opcode) { return length << 16 | opcode; }

const Fault* planted;
PFN_vkGetDeviceProcAddr real_get;
VkDevice device_of_calls;

template <class Function>
Function real(const char* name) {
    return reinterpret_cast<Function>(real_get(device_of_calls, name));
}

CallFault call_fault() { return planted ? planted->call : CallFault::none; }
uint32_t counted;
bool one_in_four() { return ++counted % 4 == 0; }

VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* create,
                                             const VkAllocationCallbacks* callbacks, VkShaderModule* out) {
    VkShaderModuleCreateInfo changed = *create;
    SpirvEdit module({create->pCode, create->pCode + create->codeSize / 4});
    if (planted && planted->edit) planted->edit(module);
    changed.pCode = module.words().data();
    changed.codeSize = module.words().size() * 4;
    return real<PFN_vkCreateShaderModule>("vkCreateShaderModule")(device, &changed, callbacks, out);
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                const VkComputePipelineCreateInfo* create,
                                                const VkAllocationCallbacks* callbacks, VkPipeline* out) {
    VkComputePipelineCreateInfo changed = *create;
    if (call_fault() == CallFault::no_constants) changed.stage.pSpecializationInfo = nullptr;
    return real<PFN_vkCreateComputePipelines>("vkCreateComputePipelines")(device, cache, count, &changed,
                                                                          callbacks, out);
}

// A dispatch is held back until its barrier comes, which decides if it is left out.
struct Held {
    VkCommandBuffer cmd = nullptr;
    uint32_t groups[3];
} held;
void dispatch(VkCommandBuffer cmd, uint32_t x, uint32_t y, uint32_t z) {
    real<PFN_vkCmdDispatch>("vkCmdDispatch")(cmd, x, y, z);
}
void let_go(bool leave_out) {
    if (held.cmd && !leave_out) dispatch(held.cmd, held.groups[0], held.groups[1], held.groups[2]);
    held.cmd = nullptr;
}

VKAPI_ATTR void VKAPI_CALL cmd_dispatch(VkCommandBuffer cmd, uint32_t x, uint32_t y, uint32_t z) {
    const auto shorter = [](uint32_t n) { return n > 1 ? n - 1 : n; };
    switch (call_fault()) {
        case CallFault::skip_dispatch:
            if (one_in_four()) return;
            break;
        case CallFault::skip_first:
            held = {cmd, {x, y, z}};
            return;
        case CallFault::short_x:
            return dispatch(cmd, shorter(x), y, z);
        case CallFault::short_y:
            return dispatch(cmd, x, shorter(y), z);
        case CallFault::short_z:
            return dispatch(cmd, x, y, shorter(z));
        default:
            break;
    }
    dispatch(cmd, x, y, z);
}

// Fovea's barriers between dispatches are for compute; the check's last one is for the host.
VKAPI_ATTR void VKAPI_CALL cmd_barrier(VkCommandBuffer cmd, VkPipelineStageFlags from,
                                       VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t count,
                                       const VkMemoryBarrier* barriers, uint32_t buffers,
                                       const VkBufferMemoryBarrier* buffer, uint32_t images,
                                       const VkImageMemoryBarrier* image) {
    let_go(to == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    real<PFN_vkCmdPipelineBarrier>("vkCmdPipelineBarrier")(cmd, from, to, flags, count, barriers, buffers,
                                                           buffer, images, image);
}

VKAPI_ATTR void VKAPI_CALL cmd_push(VkCommandBuffer cmd, VkPipelineLayout layout, VkShaderStageFlags stages,
                                    uint32_t offset, uint32_t size, const void* values) {
    uint32_t words[64] = {};
    memcpy(words, values, size);
    static uint32_t first[64];
    static bool has_first;
    switch (call_fault()) {
        case CallFault::stale_push:
            if (!std::exchange(has_first, true)) memcpy(first, words, sizeof first);
            memcpy(words, first, sizeof first);
            break;
        case CallFault::shift_push:
            std::rotate(words, words + 1, words + size / 4);
            break;
        case CallFault::cut_push:
            memset(words + size / 4 - size / 16, 0, size / 16 * 4);
            break;
        default:
            break;
    }
    real<PFN_vkCmdPushConstants>("vkCmdPushConstants")(cmd, layout, stages, offset, size, words);
}

struct Writes {
    VkWriteDescriptorSet items[32];
    VkDescriptorBufferInfo infos[32];
    Writes(uint32_t count, const VkWriteDescriptorSet* given) {
        for (uint32_t n = 0; n < count; ++n) {
            items[n] = given[n], infos[n] = *given[n].pBufferInfo;
            items[n].pBufferInfo = &infos[n];
            // Aligned as every device wants it.
            if (call_fault() == CallFault::half_range) infos[n].range = (infos[n].range / 2 + 3) / 4 * 4;
            if (call_fault() == CallFault::offset_ignored) infos[n].offset = 0;
        }
        if (call_fault() == CallFault::swapped_buffers && count > 1) std::swap(infos[0], infos[1]);
    }
};

VKAPI_ATTR void VKAPI_CALL cmd_push_set(VkCommandBuffer cmd, VkPipelineBindPoint point,
                                        VkPipelineLayout layout, uint32_t set, uint32_t count,
                                        const VkWriteDescriptorSet* given) {
    const Writes writes(count, given);
    auto push = real<PFN_vkCmdPushDescriptorSetKHR>("vkCmdPushDescriptorSetKHR");
    if (!push) push = real<PFN_vkCmdPushDescriptorSetKHR>("vkCmdPushDescriptorSet");
    push(cmd, point, layout, set, count, writes.items);
}

VKAPI_ATTR void VKAPI_CALL update_sets(VkDevice device, uint32_t count, const VkWriteDescriptorSet* given,
                                       uint32_t copies, const VkCopyDescriptorSet* copy) {
    const Writes writes(count, given);
    real<PFN_vkUpdateDescriptorSets>("vkUpdateDescriptorSets")(device, count, writes.items, copies, copy);
}

VKAPI_ATTR void VKAPI_CALL cmd_bind(VkCommandBuffer cmd, VkPipelineBindPoint point, VkPipeline pipeline) {
    static VkPipeline before;
    let_go(false);
    if (call_fault() == CallFault::stale_pipeline && before && one_in_four()) std::swap(before, pipeline);
    before = pipeline;
    real<PFN_vkCmdBindPipeline>("vkCmdBindPipeline")(cmd, point, pipeline);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkDevice device, const char* name) {
    device_of_calls = device;
    const std::pair<const char*, PFN_vkVoidFunction> hooks[] = {
        {"vkCreateShaderModule", PFN_vkVoidFunction(create_module)},
        {"vkCreateComputePipelines", PFN_vkVoidFunction(create_pipelines)},
        {"vkCmdDispatch", PFN_vkVoidFunction(cmd_dispatch)},
        {"vkCmdPipelineBarrier", PFN_vkVoidFunction(cmd_barrier)},
        {"vkCmdPushConstants", PFN_vkVoidFunction(cmd_push)},
        {"vkCmdPushDescriptorSetKHR", PFN_vkVoidFunction(cmd_push_set)},
        {"vkCmdPushDescriptorSet", PFN_vkVoidFunction(cmd_push_set)},
        {"vkUpdateDescriptorSets", PFN_vkVoidFunction(update_sets)},
        {"vkCmdBindPipeline", PFN_vkVoidFunction(cmd_bind)},
    };
    const PFN_vkVoidFunction function = real_get(device, name);
    for (const auto& [hooked, hook] : hooks)
        if (function && strcmp(hooked, name) == 0) return hook;
    return function;
}

}  // namespace

void SpirvEdit::each(const std::function<void(uint32_t*, uint32_t)>& body) {
    for (size_t at = 5; at < words_.size();) {
        const uint32_t length = words_[at] >> 16;
        body(&words_[at], length);
        at += length;
    }
}

void SpirvEdit::replace(uint32_t from, uint32_t to, int which) {
    int seen = 0;
    each([&](uint32_t* i, uint32_t length) {
        if ((i[0] & 0xffff) == from && (which < 0 || seen++ == which)) i[0] = head(length, to);
    });
}

void SpirvEdit::replace_ext(uint32_t from, uint32_t to) {
    each([&](uint32_t* i, uint32_t) {
        if ((i[0] & 0xffff) == kOpExtInst && i[3] == glsl() && i[4] == from) i[4] = to;
    });
}

void SpirvEdit::remove(uint32_t opcode) {
    std::vector<uint32_t> out(words_.begin(), words_.begin() + 5);
    each([&](uint32_t* i, uint32_t length) {
        if ((i[0] & 0xffff) != opcode) out.insert(out.end(), i, i + length);
    });
    words_ = std::move(out);
}

void SpirvEdit::built_in(uint32_t from, uint32_t to) {
    constexpr uint32_t kBuiltIn = 11;
    each([&](uint32_t* i, uint32_t length) {
        if ((i[0] & 0xffff) == kOpDecorate && length == 4 && i[2] == kBuiltIn && i[3] == from) i[3] = to;
    });
}

void SpirvEdit::after(uint32_t opcode, uint32_t ext, const More& more) {
    std::vector<uint32_t> out(words_.begin(), words_.begin() + 5);
    each([&](uint32_t* i, uint32_t length) {
        const size_t at = out.size();
        out.insert(out.end(), i, i + length);
        if ((i[0] & 0xffff) != opcode || (opcode == kOpExtInst && (i[3] != glsl() || i[4] != ext))) return;
        const uint32_t raw = new_id();
        const size_t before = out.size();
        more(out, i, raw);
        if (out.size() > before) out[at + 2] = raw;
    });
    out[3] = words_[3];
    words_ = std::move(out);
}

uint32_t SpirvEdit::constant(uint32_t type, uint32_t bits) {
    if (!type) return 0;  // then nothing in the module has a use for it
    const uint32_t id = new_id(), constant[] = {head(4, kOpConstant), type, id, bits};
    size_t at = 5;
    while ((words_[at] & 0xffff) != kOpFunction) at += words_[at] >> 16;
    words_.insert(words_.begin() + ptrdiff_t(at), constant, constant + 4);
    return id;
}
uint32_t SpirvEdit::float_constant(float value) {
    return constant(float_type(), std::bit_cast<uint32_t>(value));
}

uint32_t SpirvEdit::find(std::initializer_list<uint32_t> words) const {
    for (size_t at = 5; at < words_.size(); at += words_[at] >> 16) {
        if ((words_[at] & 0xffff) != *words.begin()) continue;
        if (std::equal(words.begin() + 1, words.end(), words_.begin() + ptrdiff_t(at) + 2))
            return words_[at + 1];
    }
    return 0;
}
uint32_t SpirvEdit::glsl() const { return find({kOpExtInstImport}); }
uint32_t SpirvEdit::float_type() const { return find({kOpTypeFloat, 32}); }
uint32_t SpirvEdit::uint_type() const { return find({kOpTypeInt, 32, 0}); }
uint32_t SpirvEdit::bool_type() const { return find({20}); }
uint32_t SpirvEdit::vector_type(uint32_t components) const {
    return find({kOpTypeVector, float_type(), components});
}

void finish_commands() { let_go(false); }
void plant(const Fault* fault) { planted = fault, counted = 0, held = {}; }

PFN_vkGetDeviceProcAddr faulty_get_proc(PFN_vkGetDeviceProcAddr real_one) {
    real_get = real_one;
    return get_proc;
}

}  // namespace fovea::test
