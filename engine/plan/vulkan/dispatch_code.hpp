// The SPIR-V of one dispatch: a module without the storage buffers that the dispatch does not bind, and the
// capability that it does not use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea {

// A module declares every buffer that some call may need; a device may let a shader bind as few as four. So
// the module is fitted to the dispatch:
//   - where the constants of the dispatch decide a branch, the code of the other way is removed: not
//   every
//     driver removes it by itself (SwiftShader computed both ways and took twice as long);
//   - a variable whose slot is not bound, or that nothing reached touches, goes. Loads from it become
//     undefined values and stores to it nothing: the flags of the dispatch keep the shader from both;
//   - where no variable of 16-bit elements is left, the capability to store them goes too, with
//   their types;
//   - with kBfloat16Call among its constants the 16-bit float that a module computes with becomes
//     bfloat16 (SPV_KHR_bfloat16): one operand of its type, two capabilities for one, and the extension's
//     name. In the matrix kernels only the operands have it once the branches for float16 are
//     removed (shaders/factors.glsl), so that one module serves both, and a GLSL compiler without
//     bfloat16 can build it. Mesa's compiler for one GPU takes the result; no driver has run it yet.
// What is left has one variable for each slot, because a slot that is declared as words and as vectors is
// read as one of them only. Ids and specialization constants stay as they are.

// The choices of one dispatch: the slots that it binds, and values for the first specialization constants.
struct CodeChoice {
    uint32_t slot_mask;  // bit i: slot i
    const uint32_t* spec;
    uint32_t spec_count;
};

// Words that write_dispatch_code needs room for: those of the module, and notes about its ids.
size_t dispatch_code_room(const uint32_t* module, size_t module_words);

// Writes the module for `choice` to `out`, which has that much room, and returns how many words it has.
size_t write_dispatch_code(const CodeChoice& choice, const uint32_t* module, size_t module_words,
                           uint32_t* out);

}  // namespace fovea
