#include "document/file_extras.hpp"

#include <fovea/files.hpp>
#include <fovea/inspect.hpp>

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr uint64_t kMaxExtraCells = 1u << 28;

struct Wanted {  // The tensors of the call.
    uint64_t heads, rows, keys;
};

// Finds "layers.3.mask" for "layers.3.q".
const Tensor* find_beside(const ImportedFile& file, const ImportMapping& m, const std::string& name) {
    const std::string q = name_in_layer(m.kind == ImportKind::fused ? m.fused : m.q, m.layer);
    const size_t end = q.find_last_of("./");
    return file.set.find((end == std::string::npos ? "" : q.substr(0, end + 1)) + name);
}

struct Cells {
    uint64_t heads = 0,
             rows = 0;  // the call's, or 1 for a broadcast; no heads: it does not fit
    std::vector<float> values;
};

// Reads [.., heads or 1, rows or 1, keys]; where there are several batch entries, the first.
Cells cells_of(const Tensor& t, const Wanted& w) {
    std::vector<uint64_t> shape = t.shape;
    if (shape.size() == 4) shape.erase(shape.begin());
    while (shape.size() < 3) shape.insert(shape.begin(), 1);
    const bool fits = shape.size() == 3 && (shape[0] == 1 || shape[0] == w.heads) &&
                      (shape[1] == 1 || shape[1] == w.rows) && shape[2] == w.keys && w.keys > 0 &&
                      element_count(t) <= kMaxExtraCells;
    if (!fits) return {};
    Result<std::vector<float>> values = to_f32(t);
    if (!values) return {};
    values->resize(shape[0] * shape[1] * w.keys);
    return {shape[0], shape[1], std::move(*values)};
}

// One for each head, whatever the shape around them.
std::vector<float> one_a_head(const Tensor& t, uint64_t heads) {
    if (element_count(t) != heads) return {};
    Result<std::vector<float>> values = to_f32(t);
    return values ? std::move(*values) : std::vector<float>{};
}

void take_bias(CallExtras& extras, Cells cells) {
    extras.bias_heads = cells.heads, extras.bias_rows = cells.rows;
    extras.bias = std::move(cells.values);
}

// A mask of numbers is added.
void take_mask(CallExtras& extras, const Tensor& t, Cells cells) {
    if (t.type != FOVEA_BOOL && t.type != FOVEA_U8) return take_bias(extras, std::move(cells));
    extras.mask_heads = cells.heads, extras.mask_rows = cells.rows;
    extras.mask.resize(cells.values.size());
    std::transform(cells.values.begin(), cells.values.end(), extras.mask.begin(),
                   [](float v) { return v != 0; });
}

}  // namespace

bool has_own_slopes(const ImportedFile& file, const ImportMapping& m) {
    return (m.kind == ImportKind::qkv || m.kind == ImportKind::fused) && find_beside(file, m, "alibi");
}

void read_extras(Projected& p, const ImportedFile& file, const ImportMapping& m) {
    if (m.kind != ImportKind::qkv && m.kind != ImportKind::fused) return;
    const Wanted wanted{p.q.shape[0], p.q.shape[1], p.k.shape[1]};
    const auto refuse = [&](const Tensor& t) {
        p.warnings.push_back("tensor '" + printable_name(t.name) + "' of shape " + format_shape(t.shape) +
                             " does not fit " + std::to_string(wanted.heads) + " heads of " +
                             format_count(wanted.rows) + " x " + format_count(wanted.keys) +
                             " scores: the shown weights are without it");
    };
    for (const char* name : {"mask", "bias"}) {
        const Tensor* t = find_beside(file, m, name);
        if (!t) continue;
        Cells cells = cells_of(*t, wanted);
        if (cells.heads == 0) {
            refuse(*t);
        } else if (std::string_view(name) == "mask") {
            take_mask(p.extras, *t, std::move(cells));
        } else if (!p.extras.bias.empty()) {
            p.warnings.push_back(
                "the file adds a mask of numbers and a bias: the shown weights are without the bias");
        } else {
            take_bias(p.extras, std::move(cells));
        }
    }
    for (const auto& [name, values] : {std::pair{"sinks", &p.extras.sinks}, {"alibi", &p.extras.alibi}}) {
        const Tensor* t = find_beside(file, m, name);
        if (!t) continue;
        *values = one_a_head(*t, wanted.heads);
        if (values->empty()) refuse(*t);
    }
}

}  // namespace fovea::visualizer
