#include "plan/vulkan/dispatch_code.hpp"

#include "plan/vulkan/shaders.hpp"
#include "problem/status.hpp"
#include "shaders/interface.h"

#include <cstring>
#include <initializer_list>

namespace fovea {
namespace {

constexpr size_t kHeaderWords = 5;
constexpr size_t kBoundWord = 3;  // ids are below it
constexpr size_t kNoteWords = 2;  // for each id
constexpr size_t kMaxAdded = 9;   // words that a module of bfloat16 has more than one of float16

// Opcodes and operands, from the SPIR-V specification.
enum Op : uint32_t {
    kUndef = 1,
    kName = 5,
    kMemberName = 6,
    kExtension = 10,
    kEntryPoint = 15,
    kCapability = 17,
    kTypeInt = 21,
    kTypeFloat = 22,
    kTypeVector = 23,
    kTypeArray = 28,
    kTypeRuntimeArray = 29,
    kTypeStruct = 30,
    kTypePointer = 32,
    kConstantTrue = 41,
    kConstantFalse = 42,
    kConstant = 43,
    kSpecConstantTrue = 48,
    kSpecConstantFalse = 49,
    kSpecConstant = 50,
    kSpecConstantOp = 52,
    kFunction = 54,
    kFunctionEnd = 56,
    kVariable = 59,
    kLoad = 61,
    kStore = 62,
    kCopyMemorySized = 64,
    kAccessChain = 65,
    kInBoundsAccessChain = 66,
    kArrayLength = 68,
    kDecorate = 71,
    kMemberDecorate = 72,
    kUConvert = 113,
    kSConvert = 114,
    kFConvert = 115,
    kBitcast = 124,
    kLogicalOr = 166,
    kLogicalAnd = 167,
    kLogicalNot = 168,
    kSelect = 169,
    kIEqual = 170,
    kINotEqual = 171,
    kBitwiseAnd = 199,
    kControlBarrier = 224,
    kMemoryBarrier = 225,
    kAtomicLoad = 227,
    kAtomicStore = 228,
    kAtomicXor = 242,  // the last of the atomic operations
    kPhi = 245,
    kLoopMerge = 246,
    kSelectionMerge = 247,
    kLabel = 248,
    kBranch = 249,
    kBranchConditional = 250,
    kSwitch = 251,
    kUnreachable = 255,
    kCooperativeMatrixStore = 4458,
};
constexpr uint32_t kSpecId = 1, kBinding = 33;  // decorations
constexpr uint32_t kStorageBuffer = 12;         // storage class
constexpr uint32_t kFloat16 = 9, kInt16 = 22;   // capabilities for arithmetic, not only storage
constexpr uint32_t kStorageBuffer16BitAccess = 4433;
constexpr uint32_t kBfloat16Type = 5116, kBfloat16CooperativeMatrix = 5118;
constexpr uint32_t kBfloat16Encoding = 0;  // an operand of OpTypeFloat

struct Instruction {
    uint32_t op, length;
    const uint32_t* operands;
};

// Flags about an ID; its value is stored separately in values_.
enum Note : uint32_t {
    kIsKnown = 1u << 0,    // a scalar: the value is its number
    kHasSpecId = 1u << 1,  // the value is the number of the specialization constant
    kIsReached = 1u << 2,  // a block: the value is the place of its last instruction
    kIsBuffer = 1u << 3,   // a storage buffer: the value is its slot
    kIsTouched = 1u << 4,  // a storage buffer that a reached block reads or writes
    kIsLeftOut = 1u << 5,  // a variable that goes, a pointer into one, or a value that was stored there
    kIsStored = 1u << 6,   // a type that the module loads, stores and converts, or one that is made of it
    kIsNamed = 1u << 7,    // a block where a construct of reached blocks ends or goes on
    kIsContinue =
        1u << 8,        // such a block that is not reached, of a loop: the value is the loop's first block
    kIsGone = 1u << 9,  // defined in a block that is not reached
};

// Instructions of a block that define nothing; of the others the second operand is what they define.
bool defines_nothing(uint32_t op) {
    return (op >= kStore && op <= kCopyMemorySized) || op == kControlBarrier || op == kMemoryBarrier ||
           op == kAtomicStore || (op >= kLoopMerge && op <= kUnreachable) || op == kCooperativeMatrixStore;
}

class CodeWriter {
  public:
    CodeWriter(const CodeChoice& choice, const uint32_t* module, size_t words, uint32_t* out)
        : choice_(choice), in_(module), words_(words), out_(out) {
        const size_t bound = module[kBoundWord];
        notes_ = out + words + kMaxAdded;
        values_ = notes_ + bound;
        memset(notes_, 0, kNoteWords * bound * sizeof *notes_);
    }

    size_t write() {
        visit([this](const Instruction& i) { note(i); });
        while (reach_more()) {
        }
        visit_reached([this](const Instruction& i) { touch(i); });
        visit([this](const Instruction& i) { leave_out(i); });
        note_blocks();
        memcpy(out_, in_, kHeaderWords * sizeof *out_);
        written_ = kHeaderWords;
        visit([this](const Instruction& i) { emit_of_block(i); });
        return written_;
    }

  private:
    template <class Visit>
    void visit(Visit visit_one) const {
        for (size_t at = kHeaderWords; at < words_; at += in_[at] >> 16)
            visit_one(Instruction{in_[at] & 0xffffu, in_[at] >> 16, in_ + at + 1});
    }
    // Visits the instructions of reached blocks, and everything outside of functions.
    template <class Visit>
    void visit_reached(Visit visit_one) const {
        bool reached = true;
        visit([&](const Instruction& i) {
            if (i.op == kFunction) reached = true;
            if (i.op == kLabel) reached = has(i.operands[0], kIsReached);
            if (reached) visit_one(i);
        });
    }

    bool has(uint32_t id, Note note) const { return (notes_[id] & note) != 0; }
    bool is(uint32_t id, uint32_t value) const { return has(id, kIsKnown) && values_[id] == value; }
    void know(uint32_t id, uint32_t value) {
        notes_[id] |= kIsKnown;
        values_[id] = value;
    }
    void know_constant(uint32_t id, uint32_t standard) {
        const bool given = has(id, kHasSpecId) && values_[id] < choice_.spec_count;
        know(id, given ? choice_.spec[values_[id]] : standard);
    }

    // Decorations, constants and buffers; those come in this order.
    void note(const Instruction& i) {
        const uint32_t* o = i.operands;
        switch (i.op) {
            case kCapability:
                computes_float16_ |= o[0] == kFloat16;
                computes_int16_ |= o[0] == kInt16;
                break;
            case kTypeInt:
                if (o[1] < 32 && !computes_int16_) notes_[o[0]] |= kIsStored;
                break;
            case kTypeFloat:
                if (o[1] < 32 && !computes_float16_) notes_[o[0]] |= kIsStored;
                break;
            case kTypeVector:
            case kTypeArray:
            case kTypeRuntimeArray:
            case kTypeStruct:
            case kTypePointer:
                note_type(i);
                break;
            case kDecorate:
                if (o[1] == kSpecId) notes_[o[0]] |= kHasSpecId;
                if (o[1] == kSpecId || o[1] == kBinding) values_[o[0]] = o[2];
                break;
            case kConstantTrue:
            case kConstantFalse:
                know(o[1], i.op == kConstantTrue);
                break;
            case kSpecConstantTrue:
            case kSpecConstantFalse:
                know_constant(o[1], i.op == kSpecConstantTrue);
                values_[o[1]] = values_[o[1]] != 0;
                break;
            case kConstant:
                if (i.length == 4) know(o[1], o[2]);
                break;
            case kSpecConstant:
                if (i.length == 4) know_constant(o[1], o[2]);
                break;
            case kSpecConstantOp:
                evaluate(o[2], o[1], o + 3);
                break;
            case kVariable:
                if (o[2] == kStorageBuffer) notes_[o[1]] |= kIsBuffer;
                break;
            default:
                break;
        }
    }

    // Vectors and arrays name their element's type first; structs list all members'; pointers name a storage
    // class first.
    void note_type(const Instruction& i) {
        const uint32_t first = i.op == kTypePointer ? 2 : 1;
        const uint32_t end = i.op == kTypeStruct ? i.length - 1 : first + 1;
        for (uint32_t n = first; n < end; ++n) notes_[i.operands[0]] |= notes_[i.operands[n]] & kIsStored;
    }

    // Evaluates the instructions that decide branches: comparisons of types, and combinations of flags.
    void evaluate(uint32_t op, uint32_t result, const uint32_t* o) {
        switch (op) {
            case kLogicalNot:
                if (has(o[0], kIsKnown)) know(result, !values_[o[0]]);
                break;
            case kLogicalAnd:
                if (is(o[0], 0) || is(o[1], 0))
                    know(result, 0);
                else if (is(o[0], 1) && is(o[1], 1))
                    know(result, 1);
                break;
            case kLogicalOr:
                if (is(o[0], 1) || is(o[1], 1))
                    know(result, 1);
                else if (is(o[0], 0) && is(o[1], 0))
                    know(result, 0);
                break;
            case kSelect: {
                if (!has(o[0], kIsKnown)) break;
                const uint32_t taken = values_[o[0]] ? o[1] : o[2];
                if (has(taken, kIsKnown)) know(result, values_[taken]);
                break;
            }
            case kBitwiseAnd:
                if (has(o[0], kIsKnown) && has(o[1], kIsKnown)) know(result, values_[o[0]] & values_[o[1]]);
                break;
            case kIEqual:
            case kINotEqual:
                if (has(o[0], kIsKnown) && has(o[1], kIsKnown))
                    know(result, (values_[o[0]] == values_[o[1]]) == (op == kIEqual));
                break;
            default:
                break;
        }
    }

    bool reach(uint32_t label) {
        if (has(label, kIsReached)) return false;
        notes_[label] |= kIsReached;
        return true;
    }

    // A value of a reached block. True if it was known before and is not any more: other ways have led there.
    bool revise(const Instruction& i) {
        const bool decides = i.op == kPhi || (i.op >= kLogicalOr && i.op <= kINotEqual);
        if (!decides) return false;
        const uint32_t* o = i.operands;
        const bool was_known = has(o[1], kIsKnown);
        notes_[o[1]] &= ~uint32_t{kIsKnown};
        if (i.op == kPhi)
            evaluate_phi(i);
        else
            evaluate(i.op, o[1], o + 2);
        return was_known && !has(o[1], kIsKnown);
    }

    // The one value that all reached blocks before this one bring along.
    void evaluate_phi(const Instruction& i) {
        const uint32_t* o = i.operands;
        bool first = true;
        uint32_t value = 0;
        for (uint32_t n = 2; n + 2 < i.length; n += 2) {
            if (!has(o[n + 1], kIsReached)) continue;
            if (!has(o[n], kIsKnown) || (!first && values_[o[n]] != value)) return;
            value = values_[o[n]];
            first = false;
        }
        if (!first) know(o[1], value);
    }

    // Marks what reached blocks lead to, as in Wegman and Zadeck's sparse conditional constant propagation
    // (1991). False once another round would find no more.
    bool reach_more() {
        bool found = false, is_entry = false, reached = false;
        visit([&](const Instruction& i) {
            const uint32_t* o = i.operands;
            if (i.op == kFunction) is_entry = true;
            if (i.op == kLabel) {
                if (is_entry) found |= reach(o[0]);
                is_entry = false;
                reached = has(o[0], kIsReached);
            }
            if (!reached) return;
            found |= revise(i);
            if (i.op == kBranch) found |= reach(o[0]);
            if (is_decided(i)) {
                found |= reach(way_of_decided(i));
            } else if (i.op == kBranchConditional || i.op == kSwitch) {
                const uint32_t step = i.op == kSwitch ? 2 : 1;  // a case has a literal before each label
                for (uint32_t n = 1; n < (step == 2 ? i.length - 1 : 3); n += step) found |= reach(o[n]);
            }
        });
        return found;
    }

    void touch(const Instruction& i) {
        if (i.op == kAccessChain || i.op == kInBoundsAccessChain || i.op == kArrayLength)
            notes_[i.operands[2]] |= kIsTouched;
    }

    void leave_out(const Instruction& i) {
        const uint32_t* o = i.operands;
        if (i.op == kVariable && has(o[1], kIsBuffer)) {
            const bool is_bound = (choice_.slot_mask >> values_[o[1]] & 1) != 0;
            if (!is_bound || !has(o[1], kIsTouched))
                notes_[o[1]] |= kIsLeftOut;
            else
                stores_16_bits_ |= has(o[0], kIsStored);
        }
        const bool is_pointer = i.op == kAccessChain || i.op == kInBoundsAccessChain;
        // A type that is only stored may have no undefined value; the conversion's result is undefined
        // instead.
        const bool is_stored = i.op == kLoad && has(o[0], kIsStored);
        if ((is_pointer || is_stored) && has(o[2], kIsLeftOut)) notes_[o[1]] |= kIsLeftOut;
    }

    // ==== blocks ====

    Instruction instruction_at(size_t at) const {
        return Instruction{in_[at] & 0xffffu, in_[at] >> 16, in_ + at + 1};
    }
    size_t place_of(const Instruction& i) const { return size_t(i.operands - 1 - in_); }
    Instruction after(const Instruction& i) const { return instruction_at(place_of(i) + i.length); }

    // A branch that goes one way, whichever.
    bool is_decided(const Instruction& i) const {
        return (i.op == kBranchConditional || i.op == kSwitch) && has(i.operands[0], kIsKnown);
    }
    uint32_t way_of_decided(const Instruction& i) const {
        const uint32_t* o = i.operands;
        if (i.op == kBranchConditional) return values_[o[0]] ? o[1] : o[2];
        for (uint32_t n = 2; n + 1 < i.length; n += 2)
            if (values_[o[0]] == o[n]) return o[n + 1];
        return o[1];
    }
    bool leads_to(const Instruction& last, uint32_t block) const {
        const uint32_t* o = last.operands;
        if (is_decided(last)) return way_of_decided(last) == block;
        if (last.op == kBranch) return o[0] == block;
        if (last.op == kBranchConditional) return o[1] == block || o[2] == block;
        if (last.op != kSwitch) return false;
        for (uint32_t n = 1; n + 1 < last.length; n += 2)
            if (o[n] == block) return true;
        return false;
    }

    // Notes the last instruction of each reached block, the blocks that constructs name, and the values that
    // no longer have a definition.
    void note_blocks() {
        uint32_t block = 0;
        visit([&](const Instruction& i) {
            const uint32_t* o = i.operands;
            if (i.op == kFunction) block = 0;
            if (i.op == kLabel) block = o[0];
            if (!block || !has(block, kIsReached)) return;
            if (i.op >= kBranch && i.op <= kUnreachable) values_[block] = uint32_t(place_of(i));
            if (i.op == kLoopMerge || (i.op == kSelectionMerge && !loses_its_merge(i)))
                notes_[o[0]] |= kIsNamed;
            if (i.op == kLoopMerge) {
                notes_[o[1]] |= kIsNamed;
                if (!has(o[1], kIsReached)) notes_[o[1]] |= kIsContinue, values_[o[1]] = block;
            }
        });
        bool reached = true;
        visit([&](const Instruction& i) {
            if (i.op == kFunction) reached = true;
            if (i.op == kLabel) {
                reached = has(i.operands[0], kIsReached);
                if (!reached && !has(i.operands[0], kIsNamed)) notes_[i.operands[0]] |= kIsGone;
            } else if (!reached && i.op != kFunctionEnd && !defines_nothing(i.op)) {
                notes_[i.operands[1]] |= kIsGone;
            }
        });
    }

    // A selection of one way is none. That of a switch stays: its blocks may leave it from anywhere.
    bool loses_its_merge(const Instruction& selection) const {
        const Instruction last = after(selection);
        return last.op == kBranchConditional && is_decided(last);
    }

    // Unreached blocks are kept, empty, if a construct must name them.
    void emit_of_block(const Instruction& i) {
        const uint32_t* o = i.operands;
        if (i.op == kFunction || i.op == kFunctionEnd) block_ = 0;
        if (i.op == kLabel) {
            block_ = o[0];
            if (has(block_, kIsReached)) return copy(i);
            if (!has(block_, kIsNamed)) return;
            copy(i);
            return has(block_, kIsContinue) ? branch_to(values_[block_]) : put({1u << 16 | kUnreachable});
        }
        if (block_ && !has(block_, kIsReached)) return;
        if (i.op == kSelectionMerge && loses_its_merge(i)) return;
        if (i.op == kPhi) return emit_phi(i);
        if (!is_decided(i)) return emit(i);
        if (i.op == kBranchConditional) return branch_to(way_of_decided(i));
        put({3u << 16 | kSwitch, o[0], way_of_decided(i)});
    }

    // The values of the ways that are left. An empty end of a loop comes from nowhere and brings any value.
    void emit_phi(const Instruction& i) {
        const uint32_t* o = i.operands;
        const size_t start = written_;
        put({0, o[0], o[1]});
        for (uint32_t n = 2; n + 2 < i.length; n += 2)
            if (has(o[n + 1], kIsReached) && leads_to(instruction_at(values_[o[n + 1]]), block_))
                put({o[n], o[n + 1]});
        Instruction next = after(i);
        while (next.op != kLoopMerge && (next.op < kBranch || next.op > kUnreachable)) next = after(next);
        if (next.op == kLoopMerge && has(next.operands[1], kIsContinue))
            put({out_[start + 3], next.operands[1]});
        out_[start] = uint32_t(written_ - start) << 16 | kPhi;
    }

    void put(std::initializer_list<uint32_t> words) {
        for (const uint32_t word : words) out_[written_++] = word;
    }
    void branch_to(uint32_t block) { put({2u << 16 | kBranch, block}); }

    // ==== what is written ====

    bool is_bfloat16() const {
        return computes_float16_ && choice_.spec_count > FOVEA_SPEC_CALL &&
               (choice_.spec[FOVEA_SPEC_CALL] & shader::kBfloat16Call) != 0;
    }

    // Without a buffer of 16-bit elements the capability is removed, with everything that needs it.
    bool is_left_out_type(uint32_t id) const { return has(id, kIsStored) && !stores_16_bits_; }

    void copy(const Instruction& i) {
        memcpy(out_ + written_, i.operands - 1, i.length * sizeof *out_);
        written_ += i.length;
    }

    void undefined(uint32_t type, uint32_t result) { put({3u << 16 | kUndef, type, result}); }

    void emit(const Instruction& i) {
        const uint32_t* o = i.operands;
        switch (i.op) {
            case kEntryPoint:
                return emit_entry_point(i);
            case kCapability:
                if (o[0] == kStorageBuffer16BitAccess && !stores_16_bits_) return;
                if (o[0] == kFloat16 && is_bfloat16())
                    return put({2u << 16 | kCapability, kBfloat16Type, 2u << 16 | kCapability,
                                kBfloat16CooperativeMatrix});
                break;
            case kExtension:
                if (is_bfloat16() && !names_bfloat16_) {
                    put({6u << 16 | kExtension, 0, 0, 0, 0, 0});
                    memcpy(out_ + written_ - 5, "SPV_KHR_bfloat16", 16);
                    names_bfloat16_ = true;
                }
                break;
            case kTypeFloat:
                if (is_bfloat16() && o[1] == 16)
                    return put({4u << 16 | kTypeFloat, o[0], 16, kBfloat16Encoding});
                [[fallthrough]];
            case kTypeInt:
            case kTypeVector:
            case kTypeArray:
            case kTypeRuntimeArray:
            case kTypeStruct:
            case kTypePointer:
                if (is_left_out_type(o[0])) return;
                break;
            case kName:
            case kMemberName:
            case kDecorate:
            case kMemberDecorate:
                if (has(o[0], kIsLeftOut) || has(o[0], kIsGone) || is_left_out_type(o[0])) return;
                break;
            case kAtomicStore:
                if (has(o[0], kIsLeftOut)) return;
                break;
            case kStore:
                if (has(o[0], kIsLeftOut) || has(o[1], kIsLeftOut)) return;
                break;
            case kVariable:
            case kAccessChain:
            case kInBoundsAccessChain:
                if (has(o[1], kIsLeftOut)) return;
                break;
            case kLoad:
                if (has(o[1], kIsLeftOut)) return;
                [[fallthrough]];
            case kArrayLength:
            case kUConvert:
            case kSConvert:
            case kFConvert:
            case kBitcast:
                if (is_left_out_type(o[0])) return;
                if (has(o[2], kIsLeftOut)) return undefined(o[0], o[1]);
                break;
            default:
                if (i.op >= kAtomicLoad && i.op <= kAtomicXor && has(o[2], kIsLeftOut))
                    return undefined(o[0], o[1]);
                break;
        }
        copy(i);
    }

    // From SPIR-V 1.4 on the entry point lists every variable after its name.
    void emit_entry_point(const Instruction& i) {
        const size_t start = written_;
        uint32_t n = 2;
        const auto ends_text = [](uint32_t word) { return (word >> 24) == 0; };
        while (!ends_text(i.operands[n])) ++n;
        memcpy(out_ + written_, i.operands - 1, (n + 2) * sizeof *out_);
        written_ += n + 2;
        for (++n; n + 1 < i.length; ++n)
            if (!has(i.operands[n], kIsLeftOut)) out_[written_++] = i.operands[n];
        out_[start] = uint32_t(written_ - start) << 16 | kEntryPoint;
    }

    const CodeChoice choice_;
    const uint32_t* in_;
    size_t words_;
    uint32_t* out_;
    uint32_t *notes_, *values_;  // arrays by ID, stored after the room for the words
    size_t written_ = 0;
    uint32_t block_ = 0;  // the block that is being written; 0 outside of blocks
    bool computes_float16_ = false, computes_int16_ = false, stores_16_bits_ = false;
    bool names_bfloat16_ = false;
};

}  // namespace

size_t dispatch_code_room(const uint32_t* module, size_t module_words) {
    return module_words + kMaxAdded + kNoteWords * module[kBoundWord];
}

size_t write_dispatch_code(const CodeChoice& choice, const uint32_t* module, size_t module_words,
                           uint32_t* out) {
    return CodeWriter(choice, module, module_words, out).write();
}

}  // namespace fovea

using namespace fovea;

FoveaResult foveaDispatchCode(const FoveaDispatch* dispatch, uint32_t* words, size_t* word_count,
                              FoveaDiag* diag) {
    if (!dispatch) return fail(diag, FOVEA_INVALID_ARGUMENT, "dispatch", "dispatch is null");
    if (!word_count) return fail(diag, FOVEA_INVALID_ARGUMENT, "word_count", "word_count is null");
    if (dispatch->shader >= kShaderCount)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "dispatch.shader",
                    "dispatch.shader is %u; there are shaders 0 to %u", dispatch->shader, kShaderCount - 1);
    if (dispatch->binding_count > FOVEA_MAX_DISPATCH_BINDINGS)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "dispatch.binding_count",
                    "dispatch.binding_count is %u; the limit is %u", dispatch->binding_count,
                    FOVEA_MAX_DISPATCH_BINDINGS);
    if (dispatch->spec_count > FOVEA_MAX_SPEC_CONSTANTS)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "dispatch.spec_count",
                    "dispatch.spec_count is %u; the limit is %u", dispatch->spec_count,
                    FOVEA_MAX_SPEC_CONSTANTS);
    CodeChoice choice{0, dispatch->spec, dispatch->spec_count};
    for (uint32_t i = 0; i < dispatch->binding_count; ++i) {
        if (dispatch->bindings[i].slot >= 32)
            return fail(diag, FOVEA_INVALID_ARGUMENT, "dispatch.bindings",
                        "dispatch.bindings[%u].slot is %u; the limit is 31", i, dispatch->bindings[i].slot);
        choice.slot_mask |= 1u << dispatch->bindings[i].slot;
    }
    if (FoveaResult r = require_shader(Shader(dispatch->shader), diag)) return r;
    const ShaderWords& module = kShaderWords[dispatch->shader];
    const size_t room = dispatch_code_room(module.words, module.count);
    if (words && *word_count < room)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "word_count",
                    "word_count is %zu; shader %s needs room for %zu", *word_count,
                    foveaShaderName(dispatch->shader), room);
    *word_count = words ? write_dispatch_code(choice, module.words, module.count, words) : room;
    return FOVEA_OK;
}
