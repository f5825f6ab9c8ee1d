#include <fovea/model/checkpoint_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "files/locale_point.hpp"
#include "model/block_run.hpp"
#include "model/checkpoint/families.hpp"
#include "model/transformer_parts.hpp"

namespace fovea {
namespace {

// Names of weights that are told to be missing.
constexpr size_t kMostMissing = 1000;

Error bad(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

// The name of a layer's part.
std::string of_layer(std::string_view name, uint64_t layer) {
    std::string text(name);
    if (const size_t at = text.find("{}"); at != std::string::npos)
        text.replace(at, 2, std::to_string(layer));
    return text;
}

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

// How a picture enters: a linear layer for each patch, the picture's own row, positions.
struct PatchEmbedding {
    Linear patch;
    F32Tensor picture{Shape{0}}, positions{Shape{0}};  // [1, 1, width], [1, 1 + patches, width]
};

// Fetches parts by name. The first error is kept; with `survey` nothing is read, only names and shapes are
// looked at.
class CheckpointModel::Loader {
  public:
    Loader(const Checkpoint& files, const Family& family, const ModelFacts& facts, std::string root)
        : files_(files),
          family_(family),
          facts_(facts),
          names_(names_of(family, files.gguf.has_value())),
          root_(std::move(root)) {}

    struct Survey {
        std::vector<std::string> missing;
        std::set<std::string, std::less<>> read;
        uint64_t numbers = 0;
        uint64_t unmapped_bytes = 0;  // of matrices that stay as they are, but must be read
    };
    Survey* survey = nullptr;
    bool as_stored = false;  // matrices stay as they are where they can

    const WeightNames& names() const { return names_; }
    const std::optional<Error>& error() const { return error_; }
    std::string rooted(std::string_view name) const { return root_ + std::string(name); }
    bool has(const std::string& name) const { return files_.find(name) != nullptr; }

    F32Tensor tensor(const std::string& name, Shape shape, bool needed) {
        const StoredWeight* weight = files_.find(name);
        if (!weight) {
            if (needed && survey)
                survey->missing.push_back(name);
            else if (needed)
                fail(bad("tensor", "no tensor '" + name + "'"));
            return F32Tensor(Shape{0});
        }
        if (weight->shape != shape) {
            fail(bad("shape", "tensor '" + printable_name(name) + "' has shape " +
                                  format_shape(weight->shape) + ", expected " + format_shape(shape)));
            return F32Tensor(Shape{0});
        }
        if (survey) {
            survey->read.insert(name);
            survey->numbers += element_count(shape);
            if (weight->type != WeightType::other) return F32Tensor(Shape{0});
        }
        F32Tensor out(std::move(shape));
        if (Result<void> r = read_rows(*weight, 0, out.values); !r) fail(r.error());
        return out;
    }

    Linear linear(std::string_view name, uint64_t in, uint64_t out, bool needed = true) {
        Linear layer;
        layer.layout = files_.gguf ? WeightLayout::out_in : family_.layout;
        const std::string full = rooted(name);
        const Shape shape = layer.layout == WeightLayout::in_out ? Shape{in, out} : Shape{out, in};
        const StoredWeight* stored = as_stored ? files_.find(full + ".weight") : nullptr;
        if (stored && layer.layout == WeightLayout::out_in && stored->shape == shape &&
            stored->type != WeightType::other) {
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

    // `kind` none where the family has no such norm or the file no such weight.
    Norm norm(std::string_view name, uint64_t width, bool needed = true) {
        Norm n;
        if (name.empty()) return n;
        const std::string full = rooted(name);
        if (!needed && !has(full + ".weight")) return n;
        n.kind = family_.norm;
        n.epsilon = facts_.epsilon;
        // The first BERT checkpoints were saved with TensorFlow's names of the two.
        const bool old_names = !has(full + ".weight") && has(full + ".gamma");
        n.weight = tensor(full + (old_names ? ".gamma" : ".weight"), {width}, needed);
        n.bias = tensor(full + (old_names ? ".beta" : ".bias"), {width}, false);
        if (family_.norm_plus_one && !files_.gguf)
            for (float& w : n.weight.values) w += 1.0f;
        return n;
    }

    Block block(uint64_t layer, uint64_t tokens);
    Embedding embedding();
    PatchEmbedding patch_embedding();
    void prediction(Model& out);
    void fail(Error error) {
        if (!error_) error_ = std::move(error);
    }

  private:
    void heads(uint64_t layer, AttentionPart& part);
    void feed_forward(uint64_t layer, FeedForward& part);

    const Checkpoint& files_;
    const Family& family_;
    const ModelFacts& facts_;
    const WeightNames& names_;
    std::string root_;
    std::optional<Error> error_;
};

void CheckpointModel::Loader::heads(uint64_t layer, AttentionPart& part) {
    const uint64_t width = facts_.width, head = facts_.head_width;
    const uint64_t q = facts_.heads * head, kv = facts_.kv_heads * head;
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
        as_stored = stored && !by_head;  // those rows are put in order
        // Rows by head are of heads that are not grouped; read_facts() holds that.
        const Linear joint = linear(joint_name, width, by_head ? 3 * q : q + 2 * kv);
        as_stored = stored;
        if (error_ || !is_present(joint)) return;
        if (by_head) {
            part.query = rows_by_head(joint, facts_.heads, 3 * head, 0, head);
            part.key = rows_by_head(joint, facts_.heads, 3 * head, head, head);
            part.value = rows_by_head(joint, facts_.heads, 3 * head, 2 * head, head);
        } else {
            part.query = part_of(joint, 0, q);
            part.key = part_of(joint, q, kv);
            part.value = part_of(joint, q + kv, kv);
        }
    }
}

void CheckpointModel::Loader::feed_forward(uint64_t layer, FeedForward& part) {
    const uint64_t width = facts_.width, hidden = facts_.hidden;
    part.activation = facts_.activation;
    part.down = linear(of_layer(names_.down, layer), hidden, width);
    // Where GGUF has no gate of its own, a family whose safetensors join the two has them joined there, too.
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
    b.order = facts_.order;
    const auto name = [&](std::string_view part) { return of_layer(part, layer); };
    const bool extra = !family_.names->attention_output_norm.empty();
    const bool head_norms = !family_.names->query_norm.empty();
    const bool first_without = family_.first_without_norm && layer == 0;
    b.attention_norm = norm(name(names_.attention_norm), facts_.width, !first_without);
    heads(layer, b.attention);
    b.attention.output =
        linear(name(names_.attention_output), facts_.heads * facts_.head_width, facts_.width);
    b.attention.heads = uint32_t(facts_.heads), b.attention.kv_heads = uint32_t(facts_.kv_heads);
    if (head_norms) {
        b.attention.query_norm = norm(name(names_.query_norm), facts_.head_width);
        b.attention.key_norm = norm(name(names_.key_norm), facts_.head_width);
    }
    if (extra) b.attention_output_norm = norm(name(names_.attention_output_norm), facts_.width);
    b.feed_forward_norm = norm(name(names_.feed_forward_norm), facts_.width);
    feed_forward(layer, b.feed_forward);
    if (extra) b.feed_forward_output_norm = norm(name(names_.feed_forward_output_norm), facts_.width);

    const bool windowed = facts_.windowed[layer];
    const auto& rope = windowed && facts_.local_rope ? facts_.local_rope : facts_.rope;
    if (rope) {
        b.attention.rope = rope->rope;
        if (rope->is_long(tokens)) b.attention.rope->divisors = rope->long_divisors;
    }
    AttentionRules& rules = b.attention.rules;
    rules.causal = facts_.causal;
    rules.softcap = facts_.softcap;
    double divisor = facts_.score_divisor;
    if (facts_.divide_by_layer) divisor = std::sqrt(double(facts_.head_width)) * double(layer + 1);
    if (divisor != 0) rules.scale = exact(divisor);
    if (windowed) {
        rules.windowed = true;
        rules.window_left = int32_t(facts_.window);
        rules.window_right = facts_.causal ? -1 : int32_t(facts_.window);
    }
    return b;
}

// Without the table, of which rows are read as they are needed.
Embedding CheckpointModel::Loader::embedding() {
    Embedding e;
    e.scale = facts_.embedding_scale;
    e.norm = norm(names_.table_norm, facts_.width, !files_.gguf);
    if (family_.names->positions.empty()) return e;
    const StoredWeight* places = files_.find(rooted(names_.positions) + ".weight");
    if (places && places->shape.size() != 2)
        fail(bad("shape", "tensor '" + printable_name(places->name) + "' is no matrix"));
    F32Tensor all = tensor(rooted(names_.positions) + ".weight",
                           {places && places->shape.size() == 2 ? places->shape[0] : 0, facts_.width}, true);
    const StoredWeight* types =
        family_.names->types.empty() ? nullptr : files_.find(rooted(names_.types) + ".weight");
    F32Tensor kinds(Shape{0});
    if (types) kinds = tensor(types->name, {types->shape.empty() ? 0 : types->shape[0], facts_.width}, true);
    if (error_ || all.rank() != 2) return e;
    const uint64_t first = std::min<uint64_t>(facts_.pad_token ? *facts_.pad_token + 1 : 0, all.rows());
    e.positions = F32Tensor({all.rows() - first, facts_.width},
                            {all.values.begin() + int64_t(first * facts_.width), all.values.end()});
    if (facts_.pad_token) {
        if (*facts_.pad_token >= all.rows()) {
            fail(bad("pad_token_id", "pad_token_id is " + std::to_string(*facts_.pad_token) +
                                         "; the table of positions has " + std::to_string(all.rows()) +
                                         " rows, and that of the first token comes after it"));
            return e;
        }
        e.pad_token = facts_.pad_token;
        const auto row = all.row(*facts_.pad_token);
        e.pad_position = F32Tensor({1, facts_.width}, {row.begin(), row.end()});
    }
    // All tokens are of type 0: one sentence.
    if (kinds.rank() != 2 || kinds.rows() == 0) return e;
    for (F32Tensor* rows : {&e.positions, &e.pad_position})
        for (uint64_t i = 0; i < rows->rows(); ++i)
            for (uint64_t c = 0; c < facts_.width; ++c) rows->row(i)[c] += kinds.row(0)[c];
    return e;
}

PatchEmbedding CheckpointModel::Loader::patch_embedding() {
    PatchEmbedding e;
    const std::string name = rooted(names_.patches);
    const StoredWeight* filter = files_.find(name + ".weight");
    if (!filter) return e;
    F32Tensor weight = tensor(name + ".weight", filter->shape, true);
    if (!weight.values.empty())
        e.patch.weight = reshaped(std::move(weight), {facts_.width, facts_.patch_width});
    e.patch.bias = tensor(name + ".bias", {facts_.width}, false);
    e.picture = tensor(rooted(names_.picture_row), {1, 1, facts_.width}, true);
    e.positions = tensor(rooted(names_.patch_positions), {1, facts_.patches + 1, facts_.width}, true);
    return e;
}

// What stands behind the blocks, without the unembedding's matrix.
void CheckpointModel::Loader::prediction(Model& out) {
    out.final_norm = norm(names_.final_norm, facts_.width);
    out.logit_softcap = facts_.logit_softcap;
    if (names_.head_dense.empty() || !has(std::string(names_.head_dense) + ".weight")) return;
    const std::string root = std::move(root_);
    root_.clear();
    out.prediction.dense = linear(names_.head_dense, facts_.width, facts_.width);
    out.prediction.norm = norm(names_.head_norm, facts_.width);
    out.prediction.activation = facts_.head_activation;
    root_ = root;
}

namespace {

// Models of text and pictures may have the name after the part that the body's names begin with:
// "language_model.lm_head".
std::string unembedding_name(const Checkpoint& files, const WeightNames& names, std::string_view root) {
    const std::string name(names.unembedding);
    constexpr std::string_view kBody = "model.";
    if (!root.ends_with(kBody) || files.find(name + ".weight")) return name;
    const std::string longer = std::string(root.substr(0, root.size() - kBody.size())) + name;
    return files.find(longer + ".weight") ? longer : name;
}

// The matrix from rows to logits; null where there is none.
const StoredWeight* unembedding_of(const Checkpoint& files, const Family& family, const ModelFacts& facts,
                                   const std::string& root) {
    const WeightNames& names = names_of(family, files.gguf.has_value());
    const StoredWeight* own = files.find(unembedding_name(files, names, root) + ".weight");
    const StoredWeight* table = files.find(root + std::string(names.table) + ".weight");
    if (facts.tied && !names.table.empty())
        return names.head_dense.empty() || files.find(std::string(names.head_dense) + ".weight") ? table
                                                                                                 : nullptr;
    if (own) return own;
    // The format leaves out a matrix that is tied, and the heads of encoders.
    if (files.gguf && facts.causal) return table;
    return nullptr;
}

}  // namespace

namespace {

// True if a model with the weight computes something else than one without it: all of the blocks and of the
// embeddings, and what else has the body's name before it. Heads of other tasks and poolers are no part of
// it.
bool is_of_body(std::string_view name, const WeightNames& names, std::string_view root,
                const Checkpoint& files, bool is_causal) {
    const auto begins = [&](std::string_view part) {
        part = part.substr(0, part.find_first_of("{"));
        return !part.empty() && name.starts_with(root) && name.substr(root.size()).starts_with(part);
    };
    if (begins(names.attention_norm) || begins(names.attention_output)) return true;
    if (files.gguf) return begins("token_embd") || begins("position_embd") || begins("output");
    if (is_causal) return !root.empty() && name.starts_with(root);
    return begins("embeddings.");
}

// What a picture is cut into, by the shapes of the convolution [width, channels, rows, columns] and of the
// positions [1, 1 + patches, width].
Result<void> read_patches(const StoredWeight& filter, const StoredWeight* positions, ModelFacts& f) {
    constexpr uint64_t kMost = 1u << 24;
    f.patch_width = 1;
    for (size_t i = 1; i < filter.shape.size() && f.patch_width <= kMost; ++i)
        f.patch_width *= filter.shape[i];
    if (filter.shape.size() != 4 || filter.shape[0] != f.width || f.patch_width == 0 || f.patch_width > kMost)
        return bad("shape", "tensor '" + printable_name(filter.name) + "' has shape " +
                                format_shape(filter.shape) + ", expected [" + std::to_string(f.width) +
                                ", channels, rows, columns]");
    if (!positions) return bad("tensor", "no tensor of the positions of patches");
    if (positions->shape.size() != 3 || positions->shape[1] < 2 || positions->shape[1] > kMost)
        return bad("shape", "tensor '" + printable_name(positions->name) + "' has shape " +
                                format_shape(positions->shape) + ", expected [1, 1 + patches, " +
                                std::to_string(f.width) + "]");
    f.patches = positions->shape[1] - 1;
    return {};
}

}  // namespace

Result<CheckpointModel> CheckpointModel::open(const std::filesystem::path& path) {
    return of(load_checkpoint(path));
}

Result<CheckpointModel> CheckpointModel::open(std::span<const NamedFile> named) {
    return of(load_checkpoint(named));
}

Result<CheckpointModel> CheckpointModel::of(Result<Checkpoint> files) {
    if (!files) return files.error();
    const auto in_path = [path = files->path](Error error) {
        error.text = printable_name(path.string(), 400) + ": " + error.text;
        return error;
    };
    Result<KnownModel> known = read_facts(*files);
    if (!known) return in_path(known.error());
    CheckpointModel model;
    model.family_ = known->family;
    const WeightNames& names = names_of(*known->family, files->gguf.has_value());
    const bool sees = !names.patches.empty();
    const std::string table_name = std::string(sees ? names.patches : names.table) + ".weight";
    for (const std::string_view root : names.roots)
        if (files->find(std::string(root) + table_name)) {
            model.root_ = std::string(root);
            break;
        }
    // Bare names and a root both fit where a file holds the table under no name: the first root is then told.
    const StoredWeight* table = files->find(model.root_ + table_name);
    if (!table)
        return in_path(bad("tensor", "no tensor '" + std::string(names.roots[0]) + table_name +
                                         "': the embedding of a " + known->facts.family + " model"));
    if (sees) {
        if (Result<void> r = read_patches(
                *table, files->find(model.root_ + std::string(names.patch_positions)), known->facts);
            !r)
            return in_path(r.error());
    } else if (table->shape.size() != 2 || table->shape[1] != known->facts.width || table->shape[0] == 0 ||
               table->shape[0] > (1u << 28))
        return in_path(bad("shape", "tensor '" + printable_name(table->name) + "' has shape " +
                                        format_shape(table->shape) + ", expected [tokens, " +
                                        std::to_string(known->facts.width) + "]"));
    if (!sees) known->facts.vocabulary = table->shape[0];
    const std::string head_name = unembedding_name(*files, names, model.root_);
    if (!known->facts.tied && !files->gguf && known->family->defaults.tied &&
        !files->config.find("tie_word_embeddings") && !files->find(head_name + ".weight")) {
        // The configuration leaves out what is usual in the family: tied, where the file has a head but no
        // matrix of its own. A body that was saved alone has no head at all.
        const auto kinds = files->config["architectures"].items();
        const JsonValue first = kinds.empty() ? JsonValue() : kinds[0];
        const std::string_view kind = first.text();
        known->facts.tied = !kind.ends_with("Model") || kind.ends_with("HeadModel");  // GPT2LMHeadModel
    }

    Loader loader(*files, *known->family, known->facts, model.root_);
    Loader::Survey survey;
    loader.survey = &survey;
    survey.read.insert(table->name);
    if (sees)
        loader.patch_embedding();
    else
        loader.embedding();
    // A configuration may claim thousands of layers that no file holds.
    for (uint64_t n = 0; n < known->facts.layers && !loader.error() && survey.missing.size() < kMostMissing;
         ++n) {
        const uint64_t before = survey.numbers;
        loader.block(n, 1);
        model.block_bytes_ = std::max(model.block_bytes_, (survey.numbers - before) * 4);
        if (loader.error()) break;
        Loader rest(*files, *known->family, known->facts, model.root_);
        Loader::Survey of_rest;
        rest.survey = &of_rest, rest.as_stored = true;
        rest.block(n, 1);
        model.stored_block_bytes_ = std::max(model.stored_block_bytes_, of_rest.numbers * 4);
        model.all_stored_block_bytes_ += of_rest.numbers * 4;
        model.run_block_bytes_ =
            std::max(model.run_block_bytes_, of_rest.numbers * 4 + of_rest.unmapped_bytes);
    }
    Model ends;
    loader.prediction(ends);
    if (loader.error()) return in_path(*loader.error());
    const StoredWeight* out = unembedding_of(*files, *known->family, known->facts, model.root_);
    if (out && (out->shape.size() != 2 || out->shape[1] != known->facts.width))
        return in_path(bad("shape", "tensor '" + printable_name(out->name) + "' has shape " +
                                        format_shape(out->shape) + ", expected [tokens, " +
                                        std::to_string(known->facts.width) + "]"));
    model.has_unembedding_ = out != nullptr;
    if (!out && known->facts.causal) survey.missing.push_back(std::string(names.unembedding) + ".weight");
    if (out) survey.read.insert(out->name);
    for (const std::string& more : {head_name + ".weight", head_name + ".bias", std::string(names.head_bias)})
        survey.read.insert(more);
    for (const StoredWeight& weight : files->weights) {
        const bool ignored =
            std::any_of(names.ignored.begin(), names.ignored.end(),
                        [&](std::string_view end) { return !end.empty() && weight.name.ends_with(end); });
        if (ignored || survey.read.count(weight.name) != 0) continue;
        if (is_of_body(weight.name, names, model.root_, *files, known->facts.causal))
            return in_path(Error{FOVEA_UNSUPPORTED, "tensor",
                                 "tensor '" + printable_name(weight.name) + "' has no place in a " +
                                     known->facts.family + " model of " +
                                     std::to_string(known->facts.layers) +
                                     " layers with this configuration; without it the results would be "
                                     "wrong"});
        model.unread_.push_back(weight.name);
    }
    model.missing_ = std::move(survey.missing);
    model.files_ = std::make_shared<const Checkpoint>(std::move(*files));
    model.facts_ = std::make_shared<const ModelFacts>(std::move(known->facts));
    return model;
}

Result<F32Tensor> CheckpointModel::embed_patches(const F32Tensor& patches) const {
    const ModelFacts& f = *facts_;
    if (f.patches == 0)
        return bad("patches", "a " + f.family + " model reads tokens, not patches of pictures");
    if (patches.shape != Shape{f.patches, f.patch_width})
        return bad("patches", "the patches have shape " + format_shape(patches.shape) + ", expected " +
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

Result<F32Tensor> CheckpointModel::embed(std::span<const uint32_t> ids, uint64_t first) const {
    if (facts_->patches != 0)
        return bad("tokens", "a " + facts_->family + " model reads patches of pictures, not tokens");
    Loader loader(*files_, *family_, *facts_, root_);
    const Embedding embedding = loader.embedding();
    if (loader.error()) return *loader.error();
    const StoredWeight& table = *files_->find(loader.rooted(loader.names().table) + ".weight");
    F32Tensor x({ids.size(), facts_->width});
    for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] >= facts_->vocabulary)
            return bad("tokens", "token " + std::to_string(i) + " is number " + std::to_string(ids[i]) +
                                     "; the model has " + std::to_string(facts_->vocabulary));
        if (Result<void> r = read_rows(table, ids[i], x.row(i)); !r) return r.error();
    }
    return embedded(embedding, ids, std::move(x), first);
}

Result<Block> CheckpointModel::block(uint64_t layer, uint64_t tokens, bool stored) const {
    if (layer >= facts_->layers)
        return bad("layer", "layer is " + std::to_string(layer) + "; the model has layers 0 to " +
                                std::to_string(facts_->layers - 1));
    Loader loader(*files_, *family_, *facts_, root_);
    loader.as_stored = stored;
    Block made = loader.block(layer, tokens);
    if (loader.error()) return *loader.error();
    return made;
}

std::string CheckpointModel::origin(uint64_t layer, std::string_view part, uint64_t output) const {
    Loader loader(*files_, *family_, *facts_, root_);
    const WeightNames& names = loader.names();
    const uint64_t head = facts_->head_width, q = facts_->heads * head, kv = facts_->kv_heads * head;
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
        output += is_up ? facts_->hidden : 0;
    }
    const bool by_column = !files_->gguf && family_->layout == WeightLayout::in_out;
    const char* const place = is_norm ? "number " : by_column ? "column " : "row ";
    const std::string full = loader.rooted(of_layer(name, layer));
    const bool old_name = is_norm && !loader.has(full + ".weight") && loader.has(full + ".gamma");
    return full + (old_name ? ".gamma, " : ".weight, ") + place + std::to_string(output) +
           (is_norm && family_->norm_plus_one && !files_->gguf ? ", plus 1" : "");
}

Result<F32Tensor> CheckpointModel::logits(F32Tensor rows, EngineRunner* engine) const {
    Loader loader(*files_, *family_, *facts_, root_);
    Model ends;
    loader.prediction(ends);
    const StoredWeight* matrix = unembedding_of(*files_, *family_, *facts_, root_);
    if (!matrix) return bad("unembedding", "the files hold no unembedding, so that there are no logits");
    const std::string bias_name = std::string(loader.names().head_bias);
    const uint64_t count = matrix->shape[0];
    F32Tensor bias(Shape{0});
    if (!bias_name.empty()) bias = loader.tensor(bias_name, {count}, false);
    if (bias.values.empty())
        bias = loader.tensor(unembedding_name(*files_, loader.names(), root_) + ".bias", {count}, false);
    if (loader.error()) return *loader.error();
    std::unique_ptr<EngineRunner> own;
    if (!engine) {
        own = make_cpu_runner();
        engine = own.get();
    }
    Result<F32Tensor> read = predict(ends, std::move(rows), BlockLoops(engine));
    if (!read) return read;
    F32Tensor out({read->rows(), count});
    if (Result<void> r = engine->stored_linear(*matrix, bias, *read, out); !r) return r.error();
    cap_logits(facts_->logit_softcap, out.values);
    return out;
}

Result<Model> CheckpointModel::whole(uint64_t tokens) const {
    if (facts_->patches != 0)
        return bad("model", "a " + facts_->family + " model reads patches of pictures, not tokens");
    Loader loader(*files_, *family_, *facts_, root_);
    Model model;
    model.name = facts_->family;
    model.embedding = loader.embedding();
    model.embedding.table = loader.tensor(loader.rooted(loader.names().table) + ".weight",
                                          {facts_->vocabulary, facts_->width}, true);
    for (uint64_t n = 0; n < facts_->layers && !loader.error(); ++n)
        model.blocks.push_back(loader.block(n, tokens));
    loader.prediction(model);
    if (const StoredWeight* matrix = unembedding_of(*files_, *family_, *facts_, root_)) {
        model.unembedding.weight = loader.tensor(matrix->name, {matrix->shape[0], facts_->width}, true);
        const std::string bias(loader.names().head_bias);
        if (!bias.empty()) model.unembedding.bias = loader.tensor(bias, {matrix->shape[0]}, false);
    }
    if (loader.error()) return *loader.error();
    return model;
}

}  // namespace fovea
