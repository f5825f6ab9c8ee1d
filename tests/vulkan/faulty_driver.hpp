// A layer between Fovea and a driver that corrupts its work. It rewrites SPIR-V before the driver sees it,
// and changes or leaves out commands. Only contexts made with faulty_get_proc are affected.
#pragma once

#include "plan/vulkan/shaders.hpp"

#include <fovea/fovea_vulkan.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

namespace fovea::test {

// A SPIR-V module that is being edited.
class SpirvEdit {
  public:
    explicit SpirvEdit(std::vector<uint32_t> words) : words_(std::move(words)) {}
    const std::vector<uint32_t>& words() const { return words_; }

    // Hands out every instruction, to be changed in place: its words, the first of which has length and
    // opcode.
    void each(const std::function<void(uint32_t* instruction, uint32_t length)>& body);
    // Replaces an opcode in all places, or in place number `which` only.
    void replace(uint32_t from, uint32_t to, int which = -1);
    void replace_ext(uint32_t from, uint32_t to);
    void remove(uint32_t opcode);
    // A variable gets the value of another built-in.
    void built_in(uint32_t from, uint32_t to);

    // After each instruction `opcode` (of extended ones: GLSL.std.450's number `ext`): its result becomes
    // `raw`, and `more` appends instructions that compute what it was from that. Appending none leaves it as
    // it is. The words of `instruction` are opcode, type, result, operands.
    using More = std::function<void(std::vector<uint32_t>& out, const uint32_t* instruction, uint32_t raw)>;
    void after(uint32_t opcode, uint32_t ext, const More& more);
    uint32_t new_id() { return words_[3]++; }
    uint32_t constant(uint32_t type, uint32_t bits);
    uint32_t float_constant(float value);
    uint32_t glsl() const;  // id of GLSL.std.450
    // Ids of types of 32 bits; 0 where the module has none.
    uint32_t float_type() const;
    uint32_t uint_type() const;
    uint32_t bool_type() const;
    uint32_t vector_type(uint32_t components) const;  // float elements

  private:
    uint32_t find(std::initializer_list<uint32_t> words) const;
    std::vector<uint32_t> words_;
};

enum class CallFault {
    none,
    skip_dispatch,  // one of four is left out
    skip_first,     // the first dispatch of every slice that has a barrier: what the second reads is stale
    short_x,        // the last workgroup in x is left out
    short_y,
    short_z,
    stale_push,       // push constants are set but the first time
    shift_push,       // the words of push constants are one off
    cut_push,         // the last quarter of the push constants is not set
    offset_ignored,   // in a buffer's descriptor
    swapped_buffers,  // in the first two descriptors
    half_range,       // reads past the first half of a buffer give zero
    stale_pipeline,   // one binding of a pipeline in four is left out
    no_constants      // specialization constants are ignored
};

struct Fault {
    const char* name;
    Shader kernel;  // the kernel that the check must name
    uint32_t type;  // FOVEA_CHECK_*
    std::function<void(SpirvEdit&)> edit;
    CallFault call = CallFault::none;
};

// The fault that contexts made from now on have, or null.
void plant(const Fault* fault);
// Before the end of a command buffer that was recorded through the layer.
void finish_commands();
// To be given as get_device_proc_addr; asks `real`.
PFN_vkGetDeviceProcAddr faulty_get_proc(PFN_vkGetDeviceProcAddr real);

}  // namespace fovea::test
