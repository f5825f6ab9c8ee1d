// Filling one FoveaDispatch: shader, constants, bindings, push constants, group counts.
#pragma once

#include "plan/vulkan/shaders.hpp"
#include "plan/vulkan/window.hpp"
#include "problem/problem.hpp"
#include "shaders/interface.h"

#include <fovea/fovea.h>

#include <cstring>

namespace fovea {

// Every slot that a module declares must be bound, used or not. Unused ones show these parts of the
// workspace, which are never accessed; inputs and outputs apart, so that no layer sees a hazard between them.
constexpr uint64_t kUnusedInputOffset = 0;
constexpr uint64_t kUnusedOutputOffset = 256;
constexpr uint64_t kUnusedBytes = 256;
constexpr uint64_t kWorkspaceHeadBytes = 512;

class DispatchBuilder {
  public:
    DispatchBuilder(FoveaDispatch& out, Shader shader) : out_(out) {
        memset(&out_, 0, sizeof out_);
        out_.shader = uint32_t(shader);
    }

    void input(uint32_t slot, uint32_t source, Window window) {
        round_for_words(window);
        bind(slot, source, window, false);
    }
    void output(uint32_t slot, uint32_t source, const Window& window) { bind(slot, source, window, true); }
    // Which of the formats of 16 bits the form that `storing` chose writes, or would write.
    void stored_type(FoveaDtype type) {
        if (is_16_bit(type)) spec(FOVEA_SPEC_STORED_TYPE, type);
    }
    // An output that is a tensor of any float type, written by the form that `storing` chose.
    void tensor(uint32_t slot, uint32_t source, Window window, FoveaDtype type,
                const FoveaDeviceFacts& facts) {
        if (!(facts.features & FOVEA_FEATURE_F16_STORAGE)) round_for_words(window);
        stored_type(type);
        bind(slot, source, window, true);
    }
    void input_if(bool used, uint32_t slot, uint32_t source, const Window& window) {
        used ? input(slot, source, window) : unused_input(slot);
    }
    void output_if(bool used, uint32_t slot, uint32_t source, const Window& window) {
        used ? output(slot, source, window) : unused_output(slot);
    }
    void unused_input(uint32_t slot) {
        bind(slot, FOVEA_BIND_WORKSPACE, {kUnusedInputOffset, kUnusedBytes, 0}, false);
    }
    void unused_output(uint32_t slot) {
        bind(slot, FOVEA_BIND_WORKSPACE, {kUnusedOutputOffset, kUnusedBytes, 0}, true);
    }
    void spec(uint32_t id, uint32_t value) {
        out_.spec[id] = value;
        if (id >= out_.spec_count) out_.spec_count = id + 1;
    }
    template <class Push>
    void push(const Push& push) {
        static_assert(sizeof push % 4 == 0 && sizeof push <= 4 * FOVEA_MAX_PUSH_WORDS);
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
};

}  // namespace fovea
