#include "model/checkpoint/checkpoint_loader.hpp"

#include <algorithm>
#include <cmath>

#include "files/locale_point.hpp"
#include "model/transformer_parts.hpp"

namespace fovea {
namespace {

std::string exact(double value) { return files::number_by("%.*g", 17, value); }

// Rows (or, of a Conv1D layer, columns) from..from + count of a joint layer.
Linear part_of(const Linear& joint, uint64_t first, uint64_t count) {
    Linear part;
    part.layout = joint.layout;
    if (joint.stored) {
        const uint64_t row_bytes = joint.stored->size_bytes / joint.d_out();
        StoredWeight rows = *joint.stored;
        rows.shape[0] = count;
        rows.size_bytes = count * row_bytes;
        rows.place += first * row_bytes;
        if (!rows.file) rows.bytes = rows.bytes.subspan(first * row_bytes, count * row_bytes);
        part.weight = {{count, joint.d_in()}, {}};
        part.stored = std::make_shared<const StoredWeight>(std::move(rows));
    } else if (joint.layout == WeightLayout::in_out) {
        part.weight = slice_columns(joint.weight, first, count);
    } else {
        const uint64_t wide = joint.weight.columns();
        const auto from = joint.weight.values.begin() + int64_t(first * wide);
        part.weight = F32Tensor({count, wide}, {from, from + int64_t(count * wide)});
    }
    if (joint.has_bias())
        part.bias = F32Tensor(Shape{count}, {joint.bias.values.begin() + int64_t(first),
                                             joint.bias.values.begin() + int64_t(first + count)});
    return part;
}

// Rows `first`, `first` + 1, ... of each of `heads` groups of `step` rows, `count` of them.
Linear rows_by_head(const Linear& joint, uint64_t heads, uint64_t step, uint64_t first, uint64_t count) {
    const uint64_t wide = joint.weight.columns();
    Linear part;
    part.weight = F32Tensor({heads * count, wide});
    if (joint.has_bias()) part.bias = F32Tensor(Shape{heads * count});
    for (uint64_t h = 0; h < heads; ++h)
        for (uint64_t i = 0; i < count; ++i) {
            const uint64_t from = h * step + first + i, to = h * count + i;
            std::copy_n(joint.weight.row(from).begin(), wide, part.weight.row(to).begin());
            if (joint.has_bias()) part.bias.values[to] = joint.bias.values[from];
        }
    return part;
}

}  // namespace

std::string of_layer(std::string_view name, uint64_t layer) {
    std::string text(name);
    if (const size_t at = text.find("{}"); at != std::string::npos)
        text.replace(at, 2, std::to_string(layer));
    return text;
}

std::string unembedding_name(const Checkpoint& files, const WeightNames& names, std::string_view root) {
    const std::string name(names.unembedding);
    // Models of text and pictures may have the name after the part that the body's names begin with:
    // "language_model.lm_head".
    constexpr std::string_view kBody = "model.";
    if (!root.ends_with(kBody) || files.find(name + ".weight")) return name;
    const std::string longer = std::string(root.substr(0, root.size() - kBody.size())) + name;
    return files.find(longer + ".weight") ? longer : name;
}

const StoredWeight* unembedding_of(const Checkpoint& files, const Family& family, const ModelConfig& config,
                                   const std::string& root) {
    const WeightNames& names = names_of(family, files.gguf.has_value());
    const StoredWeight* own = files.find(unembedding_name(files, names, root) + ".weight");
    const StoredWeight* table = files.find(root + std::string(names.table) + ".weight");
    if (config.tied && !names.table.empty())
        return names.head_dense.empty() || files.find(std::string(names.head_dense) + ".weight") ? table
                                                                                                 : nullptr;
    if (own) return own;
    // The format leaves out a matrix that is tied, and the heads of encoders.
    if (files.gguf && config.causal) return table;
    return nullptr;
}

F32Tensor CheckpointModel::Loader::tensor(const std::string& name, Shape shape, bool needed) {
    const StoredWeight* weight = files_.find(name);
    if (!weight) {
        if (needed && survey)
            survey->missing.push_back(name);
        else if (needed)
            fail(bad_checkpoint("tensor", "tensor '" + name + "' is missing"));
        return F32Tensor(Shape{0});
    }
    if (weight->shape != shape) {
        fail(bad_checkpoint("shape", "tensor '" + printable_name(name) + "' has shape " +
                                         format_shape(weight->shape) + "; it must have " +
                                         format_shape(shape)));
        return F32Tensor(Shape{0});
    }
    if (survey) {
        survey->read.insert(name);
        survey->numbers += element_count(shape);
        if (weight->type != FOVEA_DTYPE_OTHER) return F32Tensor(Shape{0});
    }
    F32Tensor out(std::move(shape));
    if (Result<void> r = read_rows(*weight, 0, out.values); !r) fail(r.error());
    return out;
}

Linear CheckpointModel::Loader::linear(std::string_view name, uint64_t in, uint64_t out, bool needed) {
    Linear layer;
    layer.layout = files_.gguf ? WeightLayout::out_in : family_.layout;
    const std::string full = rooted(name);
    const Shape shape = layer.layout == WeightLayout::in_out ? Shape{in, out} : Shape{out, in};
    const StoredWeight* stored = as_stored ? files_.find(full + ".weight") : nullptr;
    if (stored && layer.layout == WeightLayout::out_in && stored->shape == shape &&
        stored->type != FOVEA_DTYPE_OTHER) {
        layer.stored = std::make_shared<const StoredWeight>(*stored);
        layer.weight = {shape, {}};
        if (survey && stored->bytes.empty()) survey->unmapped_bytes += stored->size_bytes;
        layer.bias = tensor(full + ".bias", {out}, false);
        return layer;
    }
    F32Tensor weight = tensor(full + ".weight", shape, needed);
    layer.bias = tensor(full + ".bias", {out}, false);
    if (weight.rank() == 2) layer.weight = std::move(weight);
    return layer;
}

Norm CheckpointModel::Loader::norm(std::string_view name, uint64_t width, bool needed) {
    Norm n;
    if (name.empty()) return n;
    const std::string full = rooted(name);
    if ((!needed || family_.optional_parts) && !has(full + ".weight")) return n;
    n.kind = family_.norm;
    n.epsilon = config_.epsilon;
    // The first BERT checkpoints were saved with TensorFlow's names of the two.
    const bool old_names = !has(full + ".weight") && has(full + ".gamma");
    n.weight = tensor(full + (old_names ? ".gamma" : ".weight"), {width}, needed);
    n.bias = tensor(full + (old_names ? ".beta" : ".bias"), {width}, false);
    if (family_.norm_plus_one && !files_.gguf)
        for (float& w : n.weight.values) w += 1.0f;
    return n;
}

void CheckpointModel::Loader::heads(uint64_t layer, AttentionPart& part) {
    const uint64_t width = config_.width, head = config_.head_width;
    const uint64_t q = config_.heads * head, kv = config_.kv_heads * head;
    // GGUF files of families with a joint layer may have it in parts, and the other way round.
    const std::string joint_name = of_layer(names_.joint, layer);
    const bool is_joint =
        names_.query.empty() || (!names_.joint.empty() && has(rooted(joint_name) + ".weight"));
    if (!is_joint) {
        part.query = linear(of_layer(names_.query, layer), width, q);
        part.key = linear(of_layer(names_.key, layer), width, kv);
        part.value = linear(of_layer(names_.value, layer), width, kv);
    } else {
        const bool by_head = family_.joint == JointRows::by_head && !files_.gguf;
        const bool stored = as_stored;
        as_stored = stored && !by_head;  // rows by head are reordered, so they cannot stay stored
        // Rows by head are of heads that are not grouped; read_config() holds that.
        const Linear joint = linear(joint_name, width, by_head ? 3 * q : q + 2 * kv);
        as_stored = stored;
        if (error_ || !is_present(joint)) return;
        if (by_head) {
            part.query = rows_by_head(joint, config_.heads, 3 * head, 0, head);
            part.key = rows_by_head(joint, config_.heads, 3 * head, head, head);
            part.value = rows_by_head(joint, config_.heads, 3 * head, 2 * head, head);
        } else {
            part.query = part_of(joint, 0, q);
            part.key = part_of(joint, q, kv);
            part.value = part_of(joint, q + kv, kv);
        }
    }
}

void CheckpointModel::Loader::feed_forward(uint64_t layer, FeedForward& part) {
    const uint64_t width = config_.width, hidden = config_.hidden;
    if (names_.down.empty()) return;
    part.activation = config_.activation;
    part.down = linear(of_layer(names_.down, layer), hidden, width);
    // If GGUF has no separate gate and the family's safetensors join gate and up, then GGUF joins them, too.
    const bool joined = !family_.names->gate_up.empty();
    if (joined && !(files_.gguf && has(rooted(of_layer(names_.gate, layer)) + ".weight"))) {
        const Linear joint = linear(of_layer(names_.gate_up, layer), width, 2 * hidden);
        if (error_ || !is_present(joint)) return;
        part.gate = part_of(joint, 0, hidden);
        part.up = part_of(joint, hidden, hidden);
        return;
    }
    part.up = linear(of_layer(names_.up, layer), width, hidden);
    if (!family_.names->gate.empty()) part.gate = linear(of_layer(names_.gate, layer), width, hidden);
}

Block CheckpointModel::Loader::block(uint64_t layer, uint64_t tokens) {
    Block b;
    b.residual = true;
    b.order = config_.order;
    const auto name = [&](std::string_view part) { return of_layer(part, layer); };
    const bool extra = !family_.names->attention_output_norm.empty();
    const bool head_norms = !family_.names->query_norm.empty();
    const bool first_without = family_.first_without_norm && layer == 0;
    b.attention_norm = norm(name(names_.attention_norm), config_.width, !first_without);
    heads(layer, b.attention);
    b.attention.output =
        linear(name(names_.attention_output), config_.heads * config_.head_width, config_.width);
    b.attention.heads = uint32_t(config_.heads), b.attention.kv_heads = uint32_t(config_.kv_heads);
    if (head_norms) {
        b.attention.query_norm = norm(name(names_.query_norm), config_.head_width);
        b.attention.key_norm = norm(name(names_.key_norm), config_.head_width);
    }
    if (extra) b.attention_output_norm = norm(name(names_.attention_output_norm), config_.width);
    b.feed_forward_norm = norm(name(names_.feed_forward_norm), config_.width);
    feed_forward(layer, b.feed_forward);
    if (extra) b.feed_forward_output_norm = norm(name(names_.feed_forward_output_norm), config_.width);

    const bool windowed = config_.windowed[layer];
    const auto& rope = windowed && config_.local_rope ? config_.local_rope : config_.rope;
    if (rope) {
        b.attention.rope = rope->rope;
        if (rope->is_long(tokens)) b.attention.rope->divisors = rope->long_divisors;
    }
    AttentionRules& rules = b.attention.rules;
    rules.causal = config_.causal;
    rules.softcap = config_.softcap;
    double divisor = config_.score_divisor;
    if (config_.divide_by_layer) divisor = std::sqrt(double(config_.head_width)) * double(layer + 1);
    if (divisor != 0) rules.scale = exact(divisor);
    if (windowed) {
        rules.windowed = true;
        rules.window_left = int32_t(config_.window);
        rules.window_right = config_.causal ? -1 : int32_t(config_.window);
    }
    return b;
}

// Without the table, of which rows are read as they are needed.
Embedding CheckpointModel::Loader::embedding() {
    Embedding e;
    e.scale = config_.embedding_scale;
    e.norm = norm(names_.table_norm, config_.width, !files_.gguf);
    if (family_.names->positions.empty()) return e;
    if (family_.optional_parts && !has(rooted(names_.positions) + ".weight")) return e;
    const StoredWeight* places = files_.find(rooted(names_.positions) + ".weight");
    if (places && places->shape.size() != 2)
        fail(bad_checkpoint("shape", "tensor '" + printable_name(places->name) + "' is not a matrix"));
    F32Tensor all = tensor(rooted(names_.positions) + ".weight",
                           {places && places->shape.size() == 2 ? places->shape[0] : 0, config_.width}, true);
    const StoredWeight* types =
        family_.names->types.empty() ? nullptr : files_.find(rooted(names_.types) + ".weight");
    F32Tensor kinds(Shape{0});
    if (types) kinds = tensor(types->name, {types->shape.empty() ? 0 : types->shape[0], config_.width}, true);
    if (error_ || all.rank() != 2) return e;
    const uint64_t first = std::min<uint64_t>(config_.pad_token ? *config_.pad_token + 1 : 0, all.rows());
    e.positions = F32Tensor({all.rows() - first, config_.width},
                            {all.values.begin() + int64_t(first * config_.width), all.values.end()});
    if (config_.pad_token) {
        if (*config_.pad_token >= all.rows()) {
            fail(bad_checkpoint("pad_token_id",
                                "pad_token_id is " + std::to_string(*config_.pad_token) +
                                    "; it must be below " + std::to_string(all.rows() - 1) +
                                    ", as the rows of positions after it are those of tokens"));
            return e;
        }
        e.pad_token = config_.pad_token;
        const auto row = all.row(*config_.pad_token);
        e.pad_position = F32Tensor({1, config_.width}, {row.begin(), row.end()});
    }
    // All tokens are of type 0: one sentence.
    if (kinds.rank() != 2 || kinds.rows() == 0) return e;
    for (F32Tensor* rows : {&e.positions, &e.pad_position})
        for (uint64_t i = 0; i < rows->rows(); ++i)
            for (uint64_t c = 0; c < config_.width; ++c) rows->row(i)[c] += kinds.row(0)[c];
    return e;
}

PatchEmbedding CheckpointModel::Loader::patch_embedding() {
    PatchEmbedding e;
    const std::string name = rooted(names_.patches);
    const StoredWeight* filter = files_.find(name + ".weight");
    if (!filter) return e;
    F32Tensor weight = tensor(name + ".weight", filter->shape, true);
    if (!weight.values.empty())
        e.patch.weight = reshaped(std::move(weight), {config_.width, config_.patch_width});
    e.patch.bias = tensor(name + ".bias", {config_.width}, false);
    e.picture = tensor(rooted(names_.picture_row), {1, 1, config_.width}, true);
    e.positions = tensor(rooted(names_.patch_positions), {1, config_.patches + 1, config_.width}, true);
    return e;
}

// Reads the parts after the blocks, without the unembedding's matrix.
void CheckpointModel::Loader::prediction(Model& out) {
    out.final_norm = norm(names_.final_norm, config_.width);
    out.logit_softcap = config_.logit_softcap;
    if (names_.head_dense.empty() || !has(std::string(names_.head_dense) + ".weight")) return;
    const std::string root = std::move(root_);
    root_.clear();
    out.prediction.dense = linear(names_.head_dense, config_.width, config_.width);
    out.prediction.norm = norm(names_.head_norm, config_.width);
    out.prediction.activation = config_.head_activation;
    root_ = root;
}

}  // namespace fovea
