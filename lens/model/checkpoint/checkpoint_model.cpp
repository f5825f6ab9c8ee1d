#include <fovea/model/checkpoint_model.hpp>

#include <algorithm>

#include "model/block_run.hpp"
#include "model/checkpoint/checkpoint_loader.hpp"
#include "model/transformer_parts.hpp"

namespace fovea {

Result<F32Tensor> CheckpointModel::embed_patches(const F32Tensor& patches) const {
    const ModelConfig& f = *config_;
    if (f.patches == 0)
        return bad_checkpoint("patches",
                              "a " + f.family + " model reads tokens, not patches of pictures; give tokens");
    if (patches.shape != Shape{f.patches, f.patch_width})
        return bad_checkpoint("patches", "the patches have shape " + format_shape(patches.shape) +
                                             "; they must have " +
                                             format_shape(Shape{f.patches, f.patch_width}));
    Loader loader(*files_, *family_, f, root_);
    const PatchEmbedding e = loader.patch_embedding();
    if (loader.error()) return *loader.error();
    F32Tensor x({f.patches + 1, f.width});
    for (uint64_t i = 0; i < x.rows(); ++i)
        for (uint64_t c = 0; c < f.width; ++c) {
            double sum = i == 0 ? double(e.picture.values[c]) : 0.0;
            if (i > 0 && e.patch.has_bias()) sum = double(e.patch.bias.values[c]);
            for (uint64_t k = 0; i > 0 && k < f.patch_width; ++k)
                sum += double(patches.row(i - 1)[k]) * double(e.patch.weight.row(c)[k]);
            x.row(i)[c] = float(sum + double(e.positions.values[i * f.width + c]));
        }
    return x;
}

Result<EmbeddingRows> CheckpointModel::embedding_rows(std::span<const uint32_t> ids,
                                                      const F32Tensor& entering) const {
    Loader loader(*files_, *family_, *config_, root_);
    EmbeddingRows out;
    if (config_->patches != 0) {
        F32Tensor& places = out.embedding.positions = loader.patch_embedding().positions;
        if (loader.error()) return *loader.error();
        if (entering.shape != Shape{config_->patches + 1, config_->width})
            return bad_checkpoint("entering", "entering has shape " + format_shape(entering.shape) +
                                                  "; it must be the result of embed_patches()");
        places = reshaped(std::move(places), entering.shape);
        out.rows = entering;
        for (size_t i = 0; i < places.values.size(); ++i) out.rows.values[i] -= places.values[i];
        return out;
    }
    out.embedding = loader.embedding();
    if (loader.error()) return *loader.error();
    const StoredWeight& table = *files_->find(loader.rooted(loader.names().table) + ".weight");
    out.rows = F32Tensor({ids.size(), config_->width});
    for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] >= config_->vocabulary)
            return bad_checkpoint("tokens", "token " + std::to_string(i) + " has the ID " +
                                                std::to_string(ids[i]) + "; the model has " +
                                                std::to_string(config_->vocabulary) + " tokens");
        if (Result<void> r = read_rows(table, ids[i], out.rows.row(i)); !r) return r.error();
    }
    return out;
}

Result<F32Tensor> CheckpointModel::embed(std::span<const uint32_t> ids, uint64_t first) const {
    if (config_->patches != 0)
        return bad_checkpoint("tokens",
                              "a " + config_->family + " model reads patches of pictures, not tokens");
    Result<EmbeddingRows> read = embedding_rows(ids, {});
    if (!read) return read.error();
    return embedded(read->embedding, ids, std::move(read->rows), first);
}

Result<Block> CheckpointModel::block(uint64_t layer, uint64_t tokens, bool stored) const {
    if (layer >= config_->layers)
        return bad_checkpoint("layer", "layer is " + std::to_string(layer) + "; the model has layers 0 to " +
                                           std::to_string(config_->layers - 1));
    Loader loader(*files_, *family_, *config_, root_);
    loader.as_stored = stored;
    Block made = loader.block(layer, tokens);
    if (loader.error()) return *loader.error();
    return made;
}

std::string CheckpointModel::origin(uint64_t layer, std::string_view part, uint64_t output) const {
    Loader loader(*files_, *family_, *config_, root_);
    const WeightNames& names = loader.names();
    const uint64_t head = config_->head_width, q = config_->heads * head, kv = config_->kv_heads * head;
    const bool is_query = part == "query", is_key = part == "key", is_value = part == "value";
    const bool is_norm = part.ends_with("norm");
    static constexpr std::pair<std::string_view, std::string_view WeightNames::*> kParts[] = {
        {"query", &WeightNames::query},
        {"key", &WeightNames::key},
        {"value", &WeightNames::value},
        {"output", &WeightNames::attention_output},
        {"up", &WeightNames::up},
        {"gate", &WeightNames::gate},
        {"down", &WeightNames::down},
        {"attention_norm", &WeightNames::attention_norm},
        {"attention_output_norm", &WeightNames::attention_output_norm},
        {"feed_forward_norm", &WeightNames::feed_forward_norm},
        {"feed_forward_output_norm", &WeightNames::feed_forward_output_norm}};
    const auto* const known = std::find_if(std::begin(kParts), std::end(kParts),
                                           [&](const auto& one) { return one.first == part; });
    if (known == std::end(kParts)) return {};
    std::string_view name = names.*known->second;
    const std::string joint = loader.rooted(of_layer(names.joint, layer)) + ".weight";
    if ((is_query || is_key || is_value) && (name.empty() || (!names.joint.empty() && loader.has(joint)))) {
        name = names.joint;
        const uint64_t third = is_query ? 0 : is_key ? 1 : 2;
        output = family_->joint == JointRows::by_head && !files_->gguf
                     ? output / head * 3 * head + third * head + output % head
                     : output + (is_query ? 0
                                 : is_key ? q
                                          : q + kv);
    }
    // As Loader::feed_forward() splits them: the gate's rows first.
    const bool is_up = part == "up";
    if ((is_up || part == "gate") && !names.gate_up.empty() &&
        !(files_->gguf && loader.has(loader.rooted(of_layer(names.gate, layer)) + ".weight"))) {
        name = names.gate_up;
        output += is_up ? config_->hidden : 0;
    }
    const bool by_column = !files_->gguf && family_->layout == WeightLayout::in_out;
    const char* const place = is_norm ? "number " : by_column ? "column " : "row ";
    const std::string full = loader.rooted(of_layer(name, layer));
    const bool old_name = is_norm && !loader.has(full + ".weight") && loader.has(full + ".gamma");
    return full + (old_name ? ".gamma, " : ".weight, ") + place + std::to_string(output) +
           (is_norm && family_->norm_plus_one && !files_->gguf ? ", plus 1" : "");
}

Result<Model> CheckpointModel::ends() const {
    Loader loader(*files_, *family_, *config_, root_);
    Model ends;
    loader.prediction(ends);
    const StoredWeight* matrix = unembedding_of(*files_, *family_, *config_, root_);
    if (!matrix)
        return bad_checkpoint("unembedding", "the model's files have no unembedding, which logits need");
    Linear& out = ends.unembedding;
    out.weight.shape = matrix->shape;
    out.stored = {files_, matrix};
    const std::string bias_name = std::string(loader.names().head_bias);
    if (!bias_name.empty()) out.bias = loader.tensor(bias_name, {out.d_out()}, false);
    if (!out.has_bias())
        out.bias =
            loader.tensor(unembedding_name(*files_, loader.names(), root_) + ".bias", {out.d_out()}, false);
    if (loader.error()) return *loader.error();
    return ends;
}

Result<F32Tensor> CheckpointModel::logits(F32Tensor rows, Runner* engine) const {
    const Result<Model> after = ends();
    if (!after) return after.error();
    std::unique_ptr<Runner> own;
    return predict(*after, std::move(rows), BlockLoops(&runner_or_own(engine, own)));
}

Result<Model> CheckpointModel::whole(uint64_t tokens) const {
    if (config_->patches != 0)
        return bad_checkpoint("model",
                              "a " + config_->family + " model reads patches of pictures, not tokens");
    Loader loader(*files_, *family_, *config_, root_);
    Model model;
    model.name = config_->family;
    model.embedding = loader.embedding();
    model.embedding.table = loader.tensor(loader.rooted(loader.names().table) + ".weight",
                                          {config_->vocabulary, config_->width}, true);
    for (uint64_t n = 0; n < config_->layers && !loader.error(); ++n)
        model.blocks.push_back(loader.block(n, tokens));
    loader.prediction(model);
    if (const StoredWeight* matrix = unembedding_of(*files_, *family_, *config_, root_)) {
        model.unembedding.weight = loader.tensor(matrix->name, {matrix->shape[0], config_->width}, true);
        const std::string bias(loader.names().head_bias);
        if (!bias.empty()) model.unembedding.bias = loader.tensor(bias, {matrix->shape[0]}, false);
    }
    if (loader.error()) return *loader.error();
    return model;
}

}  // namespace fovea
