#include "shaders/spirv_module.hpp"

#include <algorithm>
#include <vector>

namespace fovea::test {
namespace {

// The opcodes and operands used here, from the SPIR-V specification.
enum Op : uint32_t {
    kCapability = 17,
    kTypeBool = 20,
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
    kSpecConstantComposite = 51,
    kSpecConstantOp = 52,
    kVariable = 59,
    kDecorate = 71,
    kMemberDecorate = 72,
    kExecutionModeId = 331,
};
// In OpSpecConstantOp.
enum Arithmetic : uint32_t {
    kCompositeExtract = 81,
    kIAdd = 128,
    kISub = 130,
    kIMul = 132,
    kUDiv = 134,
    kSelect = 169,
    kUGreaterThan = 172,
};
enum Decoration : uint32_t {
    kSpecId = 1,
    kBuiltIn = 11,
    kNonWritable = 24,
    kBindingNumber = 33,
    kDescriptorSet = 34,
    kOffset = 35,
};
enum StorageClass : uint32_t { kWorkgroup = 4, kPushConstant = 9, kStorageBuffer = 12 };
constexpr uint32_t kWorkgroupSize = 25;  // BuiltIn
constexpr uint32_t kLocalSizeId = 38;    // execution mode: the same since SPIR-V 1.2

struct Type {
    uint32_t op = 0;
    std::vector<uint32_t> operands;  // after the result ID
};

class Reader {
  public:
    explicit Reader(std::span<const uint32_t> words) : words_(words) {}

    SpirvModule read() {
        if (words_.size() < 5 || words_[0] != 0x07230203u) return {};
        module_.version = words_[1];
        for (size_t at = 5; at < words_.size();) {
            const uint32_t length = words_[at] >> 16;
            if (length == 0 || at + length > words_.size()) return {};
            take(words_[at] & 0xffffu, words_.subspan(at + 1, length - 1));
            at += length;
        }
        finish();
        return std::move(module_);
    }

  private:
    using Operands = std::span<const uint32_t>;

    void take(uint32_t op, Operands o) {
        switch (op) {
            case kCapability:
                module_.capabilities.insert(o[0]);
                break;
            case kTypeBool:
            case kTypeInt:
            case kTypeFloat:
            case kTypeVector:
            case kTypeArray:
            case kTypeRuntimeArray:
            case kTypeStruct:
            case kTypePointer:
                types_[o[0]] = {op, {o.begin() + 1, o.end()}};
                break;
            case kConstant:
            case kSpecConstant:
                constants_[o[1]] = o[2];
                break;
            case kVariable:
                variables_.push_back({o[1], o[0], o[2]});
                break;
            case kDecorate:
                decorations_[o[0]][o[1]] = o.size() > 2 ? o[2] : 0;
                break;
            case kMemberDecorate:
                members_[o[0]][o[1]][o[2]] = o.size() > 3 ? o[3] : 0;
                break;
            case kConstantTrue:
            case kSpecConstantTrue:
                constants_[o[1]] = 1;
                break;
            case kConstantFalse:
            case kSpecConstantFalse:
                constants_[o[1]] = 0;
                break;
            case kExecutionModeId:
                if (o[1] == kLocalSizeId) local_size_ = o[2];
                break;
            case kSpecConstantOp:
                take_constant_op(o);
                break;
            case kSpecConstantComposite:
                composites_[o[1]] = {o.begin() + 2, o.end()};
                break;
            default:
                break;
        }
    }

    // Sizes of shared arrays as arithmetic on specialization constants, at their defaults.
    void take_constant_op(Operands o) {
        const auto value = [&](size_t n) {
            const auto found = o.size() > n ? constants_.find(o[n]) : constants_.end();
            return found == constants_.end() ? 0u : found->second;
        };
        const uint32_t a = value(3), b = value(4);
        switch (o[2]) {
            case kCompositeExtract:
                if (composites_.contains(o[3]) && o.size() > 4 && o[4] < composites_.at(o[3]).size())
                    constants_[o[1]] = constants_[composites_.at(o[3])[o[4]]];
                break;
            case kIAdd:
                constants_[o[1]] = a + b;
                break;
            case kISub:
                constants_[o[1]] = a - b;
                break;
            case kIMul:
                constants_[o[1]] = a * b;
                break;
            case kUDiv:
                constants_[o[1]] = b ? a / b : 0;
                break;
            case kUGreaterThan:
                constants_[o[1]] = a > b;
                break;
            case kSelect:
                constants_[o[1]] = a ? b : value(5);
                break;
            default:
                break;
        }
    }

    uint64_t size_of(uint32_t type) const {
        const Type& t = types_.at(type);
        switch (t.op) {
            case kTypeBool:
                return 4;
            case kTypeInt:
            case kTypeFloat:
                return t.operands[0] / 8;
            case kTypeVector:
                return size_of(t.operands[0]) * t.operands[1];
            case kTypeArray:
                return size_of(t.operands[0]) * constants_.at(t.operands[1]);
            case kTypeStruct:
                return struct_size(type, t);
            default:
                return 0;
        }
    }

    // With offsets: to the end of the last member. Without (shared memory): the sum.
    uint64_t struct_size(uint32_t type, const Type& t) const {
        uint64_t end = 0;
        for (uint32_t n = 0; n < t.operands.size(); ++n) {
            uint64_t offset = end;
            const auto found = members_.find(type);
            if (found != members_.end() && found->second.contains(n) && found->second.at(n).contains(kOffset))
                offset = found->second.at(n).at(kOffset);
            end = std::max(end, offset + size_of(t.operands[n]));
        }
        return end;
    }

    bool is_read_only(uint32_t variable, uint32_t block) const {
        if (decorations_.contains(variable) && decorations_.at(variable).contains(kNonWritable)) return true;
        const Type& t = types_.at(block);
        const auto found = members_.find(block);
        for (uint32_t n = 0; n < t.operands.size(); ++n)
            if (found == members_.end() || !found->second.contains(n) ||
                !found->second.at(n).contains(kNonWritable))
                return false;
        return true;
    }

    void finish() {
        for (const auto& [id, decorations] : decorations_) {
            if (decorations.contains(kSpecId)) module_.spec_ids.insert(decorations.at(kSpecId));
            const bool is_size = decorations.contains(kBuiltIn) && decorations.at(kBuiltIn) == kWorkgroupSize;
            if (is_size && composites_.contains(id))
                module_.workgroup_size_spec_id = decorations_.at(composites_.at(id)[0]).at(kSpecId);
        }
        if (local_size_ && decorations_.contains(local_size_))
            module_.workgroup_size_spec_id = decorations_.at(local_size_).at(kSpecId);
        for (const Variable& v : variables_) {
            const uint32_t pointed = types_.at(v.pointer_type).operands[1];
            if (v.storage_class == kWorkgroup) module_.shared_bytes += size_of(pointed);
            if (v.storage_class == kPushConstant) module_.push_bytes = uint32_t(size_of(pointed));
            if (v.storage_class != kStorageBuffer) continue;
            SpirvModule::Binding& binding = module_.bindings[decorations_.at(v.id).at(kBindingNumber)];
            binding.set = decorations_.at(v.id).at(kDescriptorSet);
            binding.read_only = binding.read_only && is_read_only(v.id, pointed);
            ++binding.variables;
        }
    }

    struct Variable {
        uint32_t id, pointer_type, storage_class;
    };
    std::span<const uint32_t> words_;
    SpirvModule module_;
    uint32_t local_size_ = 0;
    std::map<uint32_t, Type> types_;
    std::map<uint32_t, uint32_t> constants_;
    std::map<uint32_t, std::vector<uint32_t>> composites_;
    std::vector<Variable> variables_;
    std::map<uint32_t, std::map<uint32_t, uint32_t>> decorations_;
    std::map<uint32_t, std::map<uint32_t, std::map<uint32_t, uint32_t>>> members_;
};

}  // namespace

SpirvModule SpirvModule::read(std::span<const uint32_t> words) { return Reader(words).read(); }

}  // namespace fovea::test
