// Singular directions of a head and the tokens along them.
#include <fovea/inspect/directions.hpp>
#include <fovea/inspect/format.hpp>
#include <fovea/inspect/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "writer_steps.hpp"

namespace fovea {
namespace {

using Vectors = std::vector<std::vector<double>>;

double product_of(const std::vector<double>& a, const std::vector<double>& b) {
    return writing::dot(a.data(), b.data(), a.size());
}

void add_times(std::vector<double>& to, double factor, const std::vector<double>& x) {
    for (size_t c = 0; c < to.size(); ++c) to[c] += factor * x[c];
}

// Rows as sums over an orthonormal basis.
struct Basis {
    Vectors basis;
    Vectors parts;  // by row: its part along each vector of the basis
};

// Gram-Schmidt's process, twice for each row so that rounding leaves nothing of the others (Giraud et al.,
// 2005).
Basis basis_of(const Vectors& rows) {
    constexpr double kDependent = 1e-12;  // share of the row that is rounding
    Basis made;
    for (std::vector<double> row : rows) {
        const double length = std::sqrt(product_of(row, row));
        std::vector<double> parts(made.basis.size());
        for (int pass = 0; pass < 2; ++pass)
            for (size_t b = 0; b < made.basis.size(); ++b) {
                const double along = product_of(row, made.basis[b]);
                parts[b] += along;
                add_times(row, -along, made.basis[b]);
            }
        const double left = std::sqrt(product_of(row, row));
        if (left > kDependent * length) {
            parts.push_back(left);
            for (double& value : row) value /= left;
            made.basis.push_back(std::move(row));
        }
        made.parts.push_back(std::move(parts));
    }
    for (std::vector<double>& parts : made.parts) parts.resize(made.basis.size());
    return made;
}

// Turns the columns until each two are orthogonal, and `turned` with them: one-sided Jacobi (Hestenes, 1958).
void make_orthogonal(Vectors& columns, Vectors& turned) {
    constexpr double kOrthogonal = 1e-15;
    constexpr int kMostSweeps = 60;  // some 10 are enough
    bool again = true;
    for (int sweep = 0; again && sweep < kMostSweeps; ++sweep) {
        again = false;
        for (size_t i = 0; i < columns.size(); ++i)
            for (size_t j = i + 1; j < columns.size(); ++j) {
                const double a = product_of(columns[i], columns[i]), b = product_of(columns[j], columns[j]);
                const double both = product_of(columns[i], columns[j]);
                if (std::abs(both) <= kOrthogonal * std::sqrt(a * b)) continue;
                again = true;
                const double zeta = (b - a) / (2 * both);
                const double tan = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
                const double cos = 1 / std::hypot(1.0, tan), sin = cos * tan;
                for (Vectors* const set : {&columns, &turned})
                    for (size_t c = 0; c < (*set)[i].size(); ++c) {
                        const double x = (*set)[i][c], y = (*set)[j][c];
                        (*set)[i][c] = cos * x - sin * y;
                        (*set)[j][c] = sin * x + cos * y;
                    }
            }
    }
}

std::vector<double> combined(const Vectors& basis, const std::vector<double>& parts, size_t width) {
    std::vector<double> made(width);
    for (size_t b = 0; b < basis.size(); ++b) add_times(made, parts[b], basis[b]);
    return made;
}

// The largest singular directions of the sum over rows k of from[k]' to[k], times `scale`.
std::vector<SingularDirection> directions_of(const Vectors& from, const Vectors& to, double scale,
                                             size_t count) {
    const Basis left = basis_of(from), right = basis_of(to);
    Vectors columns(right.basis.size(), std::vector<double>(left.basis.size()));
    for (size_t k = 0; k < from.size(); ++k)
        for (size_t j = 0; j < columns.size(); ++j)
            add_times(columns[j], scale * right.parts[k][j], left.parts[k]);
    Vectors turned(columns.size(), std::vector<double>(columns.size()));
    for (size_t j = 0; j < turned.size(); ++j) turned[j][j] = 1;
    make_orthogonal(columns, turned);
    std::vector<double> values;
    for (const std::vector<double>& one : columns) values.push_back(std::sqrt(product_of(one, one)));
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](size_t j) { return values[j]; });
    std::vector<SingularDirection> made;
    for (const size_t j : order) {
        if (made.size() == count || values[j] == 0) break;
        for (double& value : columns[j]) value /= values[j];
        SingularDirection& one = made.emplace_back();
        one.value = values[j];
        one.from = combined(left.basis, columns[j], from[0].size());
        one.to = combined(right.basis, turned[j], to[0].size());
        const double largest = *std::ranges::max_element(one.from, {}, [](double x) { return std::abs(x); });
        if (largest < 0)
            for (std::vector<double>* const side : {&one.from, &one.to})
                for (double& value : *side) value = -value;
    }
    return made;
}

// The norm without its scale.
writing::FrozenNorm unscaled(const Norm& n, size_t width) {
    writing::FrozenNorm made{n.kind == NormKind::layer, std::vector<double>(width, 1.0)};
    if (!n.weight.values.empty()) std::ranges::copy(n.weight.values, made.gains.begin());
    return made;
}

// Applies a norm of the outputs, one for each row, to all rows.
void norm_outputs(const Norm& n, Vectors& rows) {
    if (n.kind == NormKind::none) return;
    const writing::FrozenNorm frozen = unscaled(n, rows.size());
    std::vector<double> column(rows.size());
    for (size_t c = 0; c < rows[0].size(); ++c) {
        for (size_t o = 0; o < rows.size(); ++o) column[o] = rows[o][c];
        frozen.apply(column);
        for (size_t o = 0; o < rows.size(); ++o) rows[o][c] = column[o];
    }
}

// A head's rows of a projection, by what is read before the block's norm.
Result<Vectors> rows_of(const Block& block, const Linear& layer, uint64_t heads, uint64_t head) {
    const uint64_t width = layer.d_out() / heads;
    Vectors rows;
    for (uint64_t o = head * width; o < (head + 1) * width; ++o) {
        const Result<std::vector<float>> row = weights_of_output(layer, o);
        if (!row) return row.error();
        std::vector<double>& own = rows.emplace_back(row->begin(), row->end());
        if (block.order != BlockOrder::post && block.attention_norm.kind != NormKind::none)
            unscaled(block.attention_norm, own.size()).apply_back(own);
    }
    return rows;
}

// A head's columns of the output projection.
Result<Vectors> columns_of(const Block& block, uint64_t head) {
    const Linear& layer = block.attention.output;
    const uint64_t width = layer.d_in() / block.attention.heads, outputs = layer.d_out();
    Vectors columns(width, std::vector<double>(outputs));
    for (uint64_t o = 0; o < outputs; ++o) {
        const Result<std::vector<float>> row = weights_of_output(layer, o);
        if (!row) return row.error();
        for (uint64_t c = 0; c < width; ++c) columns[c][o] = double((*row)[head * width + c]);
    }
    if (block.attention_output_norm.kind != NormKind::none)
        for (std::vector<double>& column : columns)
            unscaled(block.attention_output_norm, outputs).apply(column);
    return columns;
}

// Keeps the outermost of many tokens.
void keep_outermost(std::vector<TokenAlong>& kept, size_t most, bool high) {
    const auto before = [high](const TokenAlong& a, const TokenAlong& b) {
        return a.value != b.value ? (a.value > b.value) == high : a.token < b.token;
    };
    std::ranges::sort(kept, before);
    if (kept.size() > most) kept.resize(most);
}

struct Asked {
    const std::vector<double>* direction;
    DirectionTokens* tokens;
};

// Finds the outermost tokens of directions; `read` returns rows [first, first + count) of a table.
template <class Read>
Result<void> find_tokens(std::span<const Asked> asked, uint64_t rows, size_t most, Read read) {
    constexpr uint64_t kAtOnce = 1024;
    for (uint64_t first = 0; first < rows; first += kAtOnce) {
        const Result<F32Tensor> table = read(first, std::min(kAtOnce, rows - first));
        if (!table) return table.error();
        for (const Asked& one : asked) {
            DirectionTokens& tokens = *one.tokens;
            for (uint64_t i = 0; i < table->rows(); ++i) {
                const double value =
                    writing::dot(one.direction->data(), table->row(i).data(), one.direction->size());
                tokens.high.push_back({uint32_t(first + i), value});
                tokens.low.push_back({uint32_t(first + i), value});
            }
            keep_outermost(tokens.high, most, true), keep_outermost(tokens.low, most, false);
        }
    }
    return {};
}

Result<void> add_tokens(const CheckpointModel& model, HeadDirections& of, size_t most) {
    const ModelConfig& f = model.config();
    std::vector<Asked> read, written;
    for (SingularDirection& one : of.qk)
        read.insert(read.end(), {{&one.from, &one.from_tokens}, {&one.to, &one.to_tokens}});
    for (SingularDirection& one : of.ov) read.push_back({&one.from, &one.from_tokens});
    const auto embedded_rows = [&](uint64_t first, uint64_t count) -> Result<F32Tensor> {
        std::vector<uint32_t> ids(static_cast<size_t>(count));
        std::iota(ids.begin(), ids.end(), uint32_t(first));
        Result<EmbeddingRows> rows = model.embedding_rows(ids, {});
        if (!rows) return rows.error();
        for (float& value : rows->rows.values) value *= float(rows->embedding.scale);
        return std::move(rows->rows);
    };
    if (f.patches == 0)
        if (Result<void> r = find_tokens(read, f.vocabulary, most, embedded_rows); !r) return r;
    if (!model.has_unembedding()) return {};
    const Result<Model> ends = model.ends();
    if (!ends) return ends.error();
    // The final norm's weight on the way to a logit.
    Vectors through;
    through.reserve(of.ov.size());
    for (SingularDirection& one : of.ov) {
        std::vector<double>& own = through.emplace_back(one.to);
        if (ends->final_norm.kind != NormKind::none) unscaled(ends->final_norm, own.size()).apply(own);
        written.push_back({&own, &one.to_tokens});
    }
    const auto unembedding_rows = [&](uint64_t first, uint64_t count) -> Result<F32Tensor> {
        F32Tensor rows({count, f.width});
        if (Result<void> r = read_rows(*ends->unembedding.stored, first, rows.values); !r) return r.error();
        return rows;
    };
    return find_tokens(written, ends->unembedding.d_out(), most, unembedding_rows);
}

}  // namespace

Result<HeadDirections> head_directions(const CheckpointModel& model, uint32_t layer, uint32_t head,
                                       size_t count, size_t most) {
    const ModelConfig& f = model.config();
    for (const auto& [name, given, limit] :
         {std::tuple{"layer", uint64_t{layer}, f.layers}, {"head", uint64_t{head}, f.heads}})
        if (given >= limit)
            return Error{FOVEA_INVALID_ARGUMENT, name,
                         std::string(name) + " is " + std::to_string(given) + "; the model has " + name +
                             "s 0 to " + std::to_string(limit - 1)};
    const Result<Block> block = model.block(layer, 1, true);
    if (!block) return block.error();
    const AttentionPart& a = block->attention;
    const uint64_t kv_head = head / (a.heads / a.kv_heads);
    Result<Vectors> q = rows_of(*block, a.query, a.heads, head),
                    k = rows_of(*block, a.key, a.kv_heads, kv_head),
                    v = rows_of(*block, a.value, a.kv_heads, kv_head), o = columns_of(*block, head);
    for (const Result<Vectors>* const one : {&q, &k, &v, &o})
        if (!*one) return one->error();
    norm_outputs(a.query_norm, *q), norm_outputs(a.key_norm, *k);
    const ScoreScale scale = score_scale(a.rules, q->size());
    HeadDirections made;
    made.layer = layer, made.head = head;
    made.qk = directions_of(*q, *k, scale.divides ? 1 / scale.value : scale.value, count);
    made.ov = directions_of(*v, *o, 1, count);
    if (most > 0)
        if (Result<void> r = add_tokens(model, made, most); !r) return r.error();
    return made;
}

std::string directions_text(const HeadDirections& of, const TokenName& name) {
    const auto list = [&](const std::vector<TokenAlong>& tokens) {
        std::string made;
        for (const TokenAlong& one : tokens) {
            const std::string text = name(one.token);
            made +=
                (made.empty() ? "" : "  ") + (text.empty() ? std::to_string(one.token) : "'" + text + "'");
        }
        return made;
    };
    std::string text = "head " + std::to_string(of.layer) + "." + std::to_string(of.head) + "\n";
    const auto add = [&](const char* title, const std::vector<SingularDirection>& all, const char* from,
                         const char* to) {
        text += title;
        for (size_t n = 0; n < all.size(); ++n) {
            const SingularDirection& one = all[n];
            text += "direction " + std::to_string(n) + ", singular value " + format_number(one.value) + "\n";
            for (const auto& [side, tokens] : {std::pair{from, &one.from_tokens}, {to, &one.to_tokens}})
                if (!tokens->high.empty())
                    text += "  " + std::string(side) + "  + " + list(tokens->high) + "\n" +
                            std::string(std::string_view(side).size() + 2, ' ') + "  - " + list(tokens->low) +
                            "\n";
        }
    };
    add("QK: by which tokens a query looks for a key, at the same position\n", of.qk, "query", "key  ");
    add("OV: what a source's tokens write\n", of.ov, "reads ", "writes");
    return text;
}

std::string directions_json(const HeadDirections& of) {
    const auto list = [](const std::vector<TokenAlong>& tokens) {
        return array_json(tokens, [](const TokenAlong& one) {
            return JsonObject().number("token", one.token).raw("value", number_json(one.value)).done();
        });
    };
    const auto ends = [&](const DirectionTokens& tokens) {
        return JsonObject().raw("high", list(tokens.high)).raw("low", list(tokens.low)).done();
    };
    const auto all = [&](const std::vector<SingularDirection>& directions) {
        return array_json(directions, [&](const SingularDirection& one) {
            return JsonObject()
                .raw("value", number_json(one.value))
                .raw("from_tokens", ends(one.from_tokens))
                .raw("to_tokens", ends(one.to_tokens))
                .raw("from", numbers_json(std::span<const double>(one.from)))
                .raw("to", numbers_json(std::span<const double>(one.to)))
                .done();
        });
    };
    return JsonObject()
        .number("layer", of.layer)
        .number("head", of.head)
        .raw("qk", all(of.qk))
        .raw("ov", all(of.ov))
        .done();
}

}  // namespace fovea
