#include "data/file_extras.hpp"

#include <fovea/files.hpp>
#include <fovea/inspect.hpp>

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr uint64_t kMostCells = 1u << 28;

struct Wanted {  // of the call
    uint64_t heads, rows, keys;
};

// "layers.3.mask" beside "layers.3.q".
const Tensor* find_beside(const ImportedFile& file, const ImportMapping& m, const std::string& name) {
    const std::string q = name_in_layer(m.kind == ImportKind::fused ? m.fused : m.q, m.layer);
    const size_t end = q.find_last_of("./");
    return file.set.find((end == std::string::npos ? "" : q.substr(0, end + 1)) + name);
}

// [heads or 1, rows, keys] of [.., rows or 1, keys]; of several batch entries the first. No heads: it does
// not fit.
uint64_t spread_cells(const Tensor& t, const Wanted& w, std::vector<float>& cells) {
    std::vector<uint64_t> shape = t.shape;
    if (shape.size() == 4) shape.erase(shape.begin());
    while (shape.size() < 3) shape.insert(shape.begin(), 1);
    const bool fits = shape.size() == 3 && (shape[0] == 1 || shape[0] == w.heads) &&
                      (shape[1] == 1 || shape[1] == w.rows) && shape[2] == w.keys && w.keys > 0 &&
                      shape[0] <= kMostCells / w.rows / w.keys && element_count(t) <= kMostCells;
    if (!fits) return 0;
    const Result<std::vector<float>> values = to_f32(t);
    if (!values) return 0;
    cells.resize(shape[0] * w.rows * w.keys);
    for (uint64_t head = 0; head < shape[0]; ++head)
        for (uint64_t row = 0; row < w.rows; ++row) {
            const uint64_t from = (head * shape[1] + (shape[1] == 1 ? 0 : row)) * w.keys;
            std::copy_n(values->begin() + std::ptrdiff_t(from), w.keys,
                        cells.begin() + std::ptrdiff_t((head * w.rows + row) * w.keys));
        }
    return shape[0];
}

// One for each head, whatever the shape around them.
std::vector<float> one_a_head(const Tensor& t, uint64_t heads) {
    if (element_count(t) != heads) return {};
    Result<std::vector<float>> values = to_f32(t);
    return values ? std::move(*values) : std::vector<float>{};
}

void take_mask(CallExtras& extras, const Tensor& t, uint64_t heads, std::vector<float> cells) {
    if (t.type == ElementType::boolean || t.type == ElementType::u8) {
        extras.mask_heads = heads;
        extras.mask.resize(cells.size());
        std::transform(cells.begin(), cells.end(), extras.mask.begin(), [](float v) { return v != 0; });
    } else {
        extras.bias_heads = heads;
        extras.bias = std::move(cells);
    }
}

}  // namespace

bool has_own_slopes(const ImportedFile& file, const ImportMapping& m) {
    return (m.kind == ImportKind::qkv || m.kind == ImportKind::fused) && find_beside(file, m, "alibi");
}

void read_extras(Projected& p, const ImportedFile& file, const ImportMapping& m) {
    if (m.kind != ImportKind::qkv && m.kind != ImportKind::fused) return;
    const Wanted wanted{p.q.shape[1], p.q.shape[2], p.k.shape[2]};
    const auto refuse = [&](const Tensor& t) {
        p.warnings.push_back("tensor '" + printable_name(t.name) + "' of shape " + format_shape(t.shape) +
                             " does not fit " + std::to_string(wanted.heads) + " heads of " +
                             format_count(wanted.rows) + " x " + format_count(wanted.keys) +
                             " scores: the shown weights are without it");
    };
    for (const char* name : {"mask", "bias"}) {
        const Tensor* t = find_beside(file, m, name);
        if (!t) continue;
        std::vector<float> cells;
        const uint64_t heads = spread_cells(*t, wanted, cells);
        if (heads == 0) {
            refuse(*t);
        } else if (std::string_view(name) == "mask") {
            take_mask(p.extras, *t, heads, std::move(cells));
        } else if (!p.extras.bias.empty()) {
            p.warnings.push_back(
                "the file adds a mask of numbers and a bias: the shown weights are without the bias");
        } else {
            p.extras.bias_heads = heads;
            p.extras.bias = std::move(cells);
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
