#include <fovea/model/learned.hpp>

#include <algorithm>

#include "model/checkpoint/checkpoint_loader.hpp"

namespace fovea {
namespace {

// Names of weights that are told to be missing.
constexpr size_t kMaxMissing = 1000;

// True if the weight changes the model's results: every weight of the blocks and of the embeddings, and
// others under the body's prefix. Heads of other tasks and poolers are not part of it.
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

// Reads the patch grid from the shapes of the convolution [width, channels, rows, columns] and of the
// positions [1, 1 + patches, width].
Result<void> read_patches(const StoredWeight& filter, const StoredWeight* positions, ModelConfig& f) {
    constexpr uint64_t kMax = 1u << 24;
    f.patch_width = 1;
    for (size_t i = 1; i < filter.shape.size() && f.patch_width <= kMax; ++i)
        f.patch_width *= filter.shape[i];
    if (filter.shape.size() != 4 || filter.shape[0] != f.width || f.patch_width == 0 || f.patch_width > kMax)
        return bad_checkpoint("shape", "tensor '" + printable_name(filter.name) + "' has shape " +
                                           format_shape(filter.shape) + "; it must have [" +
                                           std::to_string(f.width) + ", channels, rows, columns]");
    if (!positions) return bad_checkpoint("tensor", "the tensor of the positions of patches is missing");
    if (positions->shape.size() != 3 || positions->shape[1] < 2 || positions->shape[1] > kMax)
        return bad_checkpoint("shape", "tensor '" + printable_name(positions->name) + "' has shape " +
                                           format_shape(positions->shape) +
                                           "; it must have [1, 1 + patches, " + std::to_string(f.width) +
                                           "]");
    f.patches = positions->shape[1] - 1;
    return {};
}

// Finds the table of the embedding, and with it the part of all names before it; null without a table.
const StoredWeight* find_table(const Checkpoint& files, const WeightNames& names, std::string& root) {
    const std::string name = std::string(names.patches.empty() ? names.table : names.patches) + ".weight";
    for (const std::string_view one : names.roots)
        if (files.find(std::string(one) + name)) {
            root = std::string(one);
            break;
        }
    // Bare names and a root both fit where a file holds the table under no name.
    return files.find(root + name);
}

// Sets the config that the shape of the table gives.
Result<void> read_table(const Checkpoint& files, const WeightNames& names, const std::string& root,
                        const StoredWeight& table, ModelConfig& config) {
    if (!names.patches.empty())
        return read_patches(table, files.find(root + std::string(names.patch_positions)), config);
    if (table.shape.size() != 2 || table.shape[1] != config.width || table.shape[0] == 0 ||
        table.shape[0] > (1u << 28))
        return bad_checkpoint("shape", "tensor '" + printable_name(table.name) + "' has shape " +
                                           format_shape(table.shape) + "; it must have [tokens, " +
                                           std::to_string(config.width) + "]");
    config.vocabulary = table.shape[0];
    return {};
}

// True if the configuration leaves out what is usual in the family: tied, where the file has a head but no
// unembedding. A body that was saved without its head has none at all.
bool is_tied_by_default(const Checkpoint& files, const Family& family, const std::string& head_name) {
    if (files.gguf || !family.defaults.tied || files.config.find("tie_word_embeddings") ||
        files.find(head_name + ".weight"))
        return false;
    const auto kinds = files.config["architectures"].items();
    const JsonValue first = kinds.empty() ? JsonValue() : kinds[0];
    const std::string_view kind = first.text();
    return !kind.ends_with("Model") || kind.ends_with("HeadModel");  // GPT2LMHeadModel
}

}  // namespace

Result<void> CheckpointModel::Loader::open(Checkpoint& files, CheckpointModel& model) {
    Result<KnownModel> known = read_config(files);
    if (!known) return known.error();
    model.family_ = known->family;
    ModelConfig& config = known->config;
    const WeightNames& names = names_of(*known->family, files.gguf.has_value());
    const StoredWeight* table = find_table(files, names, model.root_);
    if (!table)
        return bad_checkpoint("tensor", "tensor '" + std::string(names.roots[0]) +
                                            std::string(names.patches.empty() ? names.table : names.patches) +
                                            ".weight' is missing; a " + config.family +
                                            " model needs it as its embedding");
    if (Result<void> r = read_table(files, names, model.root_, *table, config); !r) return r;
    config.tied =
        config.tied || is_tied_by_default(files, *known->family, unembedding_name(files, names, model.root_));
    if (Result<void> r = Loader(files, *known->family, config, model.root_).survey_all(*table, model); !r)
        return r;
    model.files_ = std::make_shared<const Checkpoint>(std::move(files));
    model.config_ = std::make_shared<const ModelConfig>(std::move(config));
    return {};
}

Result<void> CheckpointModel::Loader::survey_all(const StoredWeight& table, CheckpointModel& model) {
    Survey all;
    survey = &all;
    all.read.insert(table.name);
    if (names_.patches.empty())
        embedding();
    else
        patch_embedding();
    // A configuration may claim thousands of layers that no file holds.
    for (uint64_t n = 0; n < config_.layers && !error_ && all.missing.size() < kMaxMissing; ++n) {
        const uint64_t before = all.numbers;
        block(n, 1);
        model.block_bytes_ = std::max(model.block_bytes_, (all.numbers - before) * 4);
        if (error_) break;
        Loader rest(files_, family_, config_, root_);
        Survey of_rest;
        rest.survey = &of_rest, rest.as_stored = true;
        rest.block(n, 1);
        model.stored_block_bytes_ = std::max(model.stored_block_bytes_, of_rest.numbers * 4);
        model.all_stored_block_bytes_ += of_rest.numbers * 4;
        model.run_block_bytes_ =
            std::max(model.run_block_bytes_, of_rest.numbers * 4 + of_rest.unmapped_bytes);
    }
    Model ends;
    prediction(ends);
    if (error_) return *error_;
    const StoredWeight* out = unembedding_of(files_, family_, config_, root_);
    if (out && (out->shape.size() != 2 || out->shape[1] != config_.width))
        return bad_checkpoint("shape", "tensor '" + printable_name(out->name) + "' has shape " +
                                           format_shape(out->shape) + "; it must have [tokens, " +
                                           std::to_string(config_.width) + "]");
    model.has_unembedding_ = out != nullptr;
    if (!out && config_.causal) all.missing.push_back(std::string(names_.unembedding) + ".weight");
    if (out) all.read.insert(out->name);
    const std::string head_name = unembedding_name(files_, names_, root_);
    for (const std::string& more :
         {head_name + ".weight", head_name + ".bias", std::string(names_.head_bias)})
        all.read.insert(more);
    model.missing_ = std::move(all.missing);
    return check_unread(all, model);
}

// Rejects weights of the body that the family has no place for; others are listed as unread.
Result<void> CheckpointModel::Loader::check_unread(const Survey& all, CheckpointModel& model) const {
    for (const StoredWeight& weight : files_.weights) {
        const bool ignored =
            std::any_of(names_.ignored.begin(), names_.ignored.end(),
                        [&](std::string_view end) { return !end.empty() && weight.name.ends_with(end); });
        if (ignored || all.read.count(weight.name) != 0) continue;
        if (is_of_body(weight.name, names_, root_, files_, config_.causal))
            return Error{FOVEA_UNSUPPORTED, "tensor",
                         "tensor '" + printable_name(weight.name) + "' has no place in a " + config_.family +
                             " model of " + std::to_string(config_.layers) +
                             " layers with this configuration; without it the results would be wrong"};
        model.unread_.push_back(weight.name);
    }
    return {};
}

Result<CheckpointModel> CheckpointModel::open(const std::filesystem::path& path) {
    const std::vector<NamedFile> learned = learned_checkpoint(path);
    if (learned.empty()) return of(load_checkpoint(path));
    Result<Checkpoint> files = load_checkpoint(learned);
    if (files) files->path = files->folder = path;
    return of(std::move(files));
}

Result<CheckpointModel> CheckpointModel::open(std::span<const NamedFile> named) {
    return of(load_checkpoint(named));
}

Result<CheckpointModel> CheckpointModel::of(Result<Checkpoint> files) {
    if (!files) return files.error();
    const std::string path = files->path.string();
    CheckpointModel model;
    if (Result<void> r = Loader::open(*files, model); !r) {
        Error error = r.error();
        error.text = printable_name(path, 400) + ": " + error.text;
        return error;
    }
    return model;
}

}  // namespace fovea
