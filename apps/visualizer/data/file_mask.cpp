#include "data/file_mask.hpp"

#include "data/imported_file.hpp"

namespace fovea::visualizer {
namespace {

constexpr uint64_t kMostMaskElements = 1u << 28;

// The tensor of that name beside the mapped queries, or none.
const Tensor* beside_queries(const Settings& s, std::string_view what) {
    if (!s.file || s.mapping.kind != ImportKind::qkv) return nullptr;
    const std::string q = name_in_layer(s.mapping.q, s.mapping.layer);
    return s.file->set.find(q.substr(0, q.rfind('.') + 1) + std::string(what));
}

}  // namespace

bool has_file_mask(const Settings& s) {
    const Tensor* t = s.pattern == MaskPattern::none ? beside_queries(s, "mask") : nullptr;
    return t && t->shape.size() >= 2 && (t->type == ElementType::boolean || t->type == ElementType::u8);
}

std::vector<uint8_t> file_mask(const Settings& s, uint64_t rows, uint64_t keys) {
    if (!has_file_mask(s) || rows == 0 || keys == 0) return {};
    const Tensor* t = beside_queries(s, "mask");
    const size_t rank = t->shape.size();
    const uint64_t cells = rows * keys, count = element_count(*t);
    if (t->shape[rank - 2] != rows || t->shape[rank - 1] != keys || count > kMostMaskElements) return {};
    const Result<std::vector<float>> values = to_f32(*t);
    if (!values || values->empty()) return {};
    std::vector<uint8_t> mask(cells);
    for (uint64_t n = 0; n < values->size(); ++n) {
        const uint8_t visible = (*values)[n] != 0;
        if (n >= cells && mask[n % cells] != visible) return {};  // heads that see different keys
        mask[n % cells] = visible;
    }
    return mask;
}

std::vector<std::string> unused_of_file(const Settings& s, uint64_t rows, uint64_t keys) {
    std::vector<std::string> lines;
    const auto tell = [&](const char* name, const char* why) {
        if (const Tensor* t = beside_queries(s, name))
            lines.push_back("'" + printable_name(t->name) + "' is not used: " + why);
    };
    if (s.pattern == MaskPattern::none && file_mask(s, rows, keys).empty())
        tell("mask", "it is no boolean mask of queries x keys that all heads share");
    tell("bias", "the weights shown are those without it");
    tell("sinks", "the weights shown are those without them");
    return lines;
}

}  // namespace fovea::visualizer
