// Filling one FoveaDispatch: shader, constants, bindings, push constants, group counts.
#pragma once

#include "plan/vulkan/shaders.hpp"
#include "plan/vulkan/window.hpp"
#include "problem/problem.hpp"
#include "shaders/interface.h"

#include <fovea/fovea.h>

#include <cstring>
#include <initializer_list>

namespace fovea {

// The kGather* bit of an input, by its slot in the attention kernels.
constexpr uint32_t gather_bit(uint32_t slot) {
    switch (slot) {
        case FOVEA_SLOT_SEQUENCES:
            return shader::kGatherSequences;
        case FOVEA_SLOT_BLOCK_TABLE:
            return shader::kGatherBlockTable;
        case FOVEA_SLOT_ALIBI:
            return shader::kGatherAlibi;
        case FOVEA_SLOT_SINKS:
            return shader::kGatherSinks;
        case FOVEA_SLOT_LSE:
            return shader::kGatherLse;
        case FOVEA_SLOT_DLSE:
            return shader::kGatherDLse;
        case FOVEA_SLOT_DROPOUT_MASK:
            return shader::kGatherDropoutMask;
        case FOVEA_SLOT_MASK:
            return shader::kGatherMask;
        case FOVEA_SLOT_BIAS:
            return shader::kGatherBias;
        default:
            return 0;
    }
}

inline shader::TensorView view_of(const FoveaStrides& strides, const Window& window) {
    return {window.base, uint32_t(strides.batch), uint32_t(strides.head), uint32_t(strides.row)};
}

// A software driver takes a second or more to compile a pipeline, and each set of slots is one: there a
// kernel's slots are the same for every call. Slots that a call does not use are bound to the start of the
// workspace, inputs and outputs separately, so that no layer sees a hazard between them.
constexpr uint64_t kStandInBytes = 256;
inline bool is_software(const FoveaDeviceProperties& properties) {
    return properties.device_class == FOVEA_CLASS_CPU;
}
inline uint64_t workspace_head_bytes(const FoveaDeviceProperties& properties) {
    return is_software(properties) ? 2 * kStandInBytes : 0;
}

// A dispatch binds what it reads and writes, and foveaDispatchCode takes the other buffers out of the shader.
class DispatchBuilder {
  public:
    // `gathered`: kGather* bits of inputs that this kernel reads from the workspace, so that they are not
    // bound.
    DispatchBuilder(FoveaDispatch& out, Shader shader, uint32_t gathered = 0)
        : out_(out), gathered_(gathered) {
        memset(&out_, 0, sizeof out_);
        out_.shader = uint32_t(shader);
    }

    void input(uint32_t slot, uint32_t source, Window window) {
        if (gathered_ & gather_bit(slot)) return;
        round_for_words(window);
        bind(slot, source, window, false);
    }
    void output(uint32_t slot, uint32_t source, const Window& window) { bind(slot, source, window, true); }
    // The element type that the shader stores, see shaders/store.glsl.
    void stored_type(FoveaDtype type, const FoveaDeviceProperties& properties) {
        if (type == FOVEA_F32) return;
        const bool by_words = !(properties.features & FOVEA_FEATURE_F16_STORAGE);
        spec(FOVEA_SPEC_STORED_TYPE, uint32_t(type) | (by_words ? shader::kStoredByWords : 0u));
    }
    // An output that is a tensor of any type.
    void tensor(uint32_t slot, uint32_t source, Window window, FoveaDtype type,
                const FoveaDeviceProperties& properties) {
        if (!(properties.features & FOVEA_FEATURE_F16_STORAGE) || is_compressed(type))
            round_for_words(window);
        stored_type(type, properties);
        bind(slot, source, window, true);
    }
    void input_if(bool used, uint32_t slot, uint32_t source, const Window& window) {
        if (used) input(slot, source, window);
    }
    void output_if(bool used, uint32_t slot, uint32_t source, const Window& window) {
        if (used) output(slot, source, window);
    }
    bool binds(uint32_t slot) const {
        for (uint32_t i = 0; i < out_.binding_count; ++i)
            if (out_.bindings[i].slot == slot) return true;
        return false;
    }
    // For software drivers: binds the slots that are not bound yet, as far as `limit` buffers allow.
    void stand_in(uint32_t limit, std::initializer_list<uint32_t> inputs,
                  std::initializer_list<uint32_t> outputs) {
        for (const uint32_t slot : inputs)
            if (!binds(slot) && out_.binding_count < limit)
                bind(slot, FOVEA_BIND_WORKSPACE, {0, kStandInBytes, 0}, false);
        for (const uint32_t slot : outputs)
            if (!binds(slot) && out_.binding_count < limit)
                bind(slot, FOVEA_BIND_WORKSPACE, {kStandInBytes, kStandInBytes, 0}, true);
    }
    uint32_t binding_count() const { return out_.binding_count; }
    void call(bool general, bool entries = false, bool stats = false) {
        spec(FOVEA_SPEC_CALL, (general ? shader::kGeneralCall : 0u) | (entries ? shader::kEntriesCall : 0u) |
                                  (stats ? shader::kStatsCall : 0u) | gathered_);
    }
    // Sets the operand type of a kernel with cooperative matrices.
    void bfloat16(FoveaPrecision precision) {
        if (precision == FOVEA_PRECISION_BF16_INPUTS)
            spec(FOVEA_SPEC_CALL, out_.spec[FOVEA_SPEC_CALL] | shader::kBfloat16Call);
    }
    void spec(uint32_t id, uint32_t value) {
        out_.spec[id] = value;
        if (id >= out_.spec_count) out_.spec_count = id + 1;
    }
    template <class Push>
    void push(const Push& push) {
        static_assert(sizeof push % 4 == 0 && sizeof push <= 4 * FOVEA_MAX_PUSH_WORDS,
                      "devices need not have more push constants: pack two fields into a word");
        memcpy(out_.push, &push, sizeof push);
        out_.push_words = sizeof push / 4;
    }
    void groups(uint64_t x, uint64_t y, uint64_t z) {
        out_.groups[0] = uint32_t(x);
        out_.groups[1] = uint32_t(y);
        out_.groups[2] = uint32_t(z);
    }
    void after_earlier_ones() { out_.barrier_before = 1; }

  private:
    void bind(uint32_t slot, uint32_t source, const Window& window, bool written) {
        out_.bindings[out_.binding_count++] = {slot, source, written, 0, window.offset, window.size};
    }

    FoveaDispatch& out_;
    const uint32_t gathered_;
};

}  // namespace fovea
