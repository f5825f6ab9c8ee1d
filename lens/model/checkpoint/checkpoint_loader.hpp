// Fetches the parts of a model from a checkpoint by their names.
#pragma once

#include <fovea/model/checkpoint_model.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/families.hpp"

namespace fovea {

inline Error bad_checkpoint(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

// Returns the name of a layer's part.
std::string of_layer(std::string_view name, uint64_t layer);

// Returns the name of the unembedding, without ".weight".
std::string unembedding_name(const Checkpoint& files, const WeightNames& names, std::string_view root);

// Returns the matrix from rows to logits; null where there is none.
const StoredWeight* unembedding_of(const Checkpoint& files, const Family& family, const ModelConfig& config,
                                   const std::string& root);

// The embedding of a picture: a linear layer for each patch, the row of the whole picture, positions.
struct PatchEmbedding {
    Linear patch;
    F32Tensor picture{Shape{0}}, positions{Shape{0}};  // [1, 1, width], [1, 1 + patches, width]
};

// Fetches parts by name. The first error is kept; with `survey` nothing is read, only names and shapes are
// looked at.
class CheckpointModel::Loader {
  public:
    // Reads the configuration and surveys all parts of the checkpoint, which `model` takes.
    static Result<void> open(Checkpoint& files, CheckpointModel& model);

    Loader(const Checkpoint& files, const Family& family, const ModelConfig& config, std::string root)
        : files_(files),
          family_(family),
          config_(config),
          names_(names_of(family, files.gguf.has_value())),
          root_(std::move(root)) {}

    struct Survey {
        std::vector<std::string> missing;
        std::set<std::string, std::less<>> read;
        uint64_t numbers = 0;
        uint64_t unmapped_bytes = 0;  // bytes of matrices that stay stored but must be read
    };
    Survey* survey = nullptr;
    bool as_stored = false;  // matrices stay as they are where they can

    const WeightNames& names() const { return names_; }
    const std::optional<Error>& error() const { return error_; }
    std::string rooted(std::string_view name) const { return root_ + std::string(name); }
    bool has(const std::string& name) const { return files_.find(name) != nullptr; }

    F32Tensor tensor(const std::string& name, Shape shape, bool needed);
    Linear linear(std::string_view name, uint64_t in, uint64_t out, bool needed = true);
    // `kind` none where the family has no such norm or the file no such weight.
    Norm norm(std::string_view name, uint64_t width, bool needed = true);
    Block block(uint64_t layer, uint64_t tokens);
    Embedding embedding();
    PatchEmbedding patch_embedding();
    void prediction(Model& out);
    void fail(Error error) {
        if (!error_) error_ = std::move(error);
    }

  private:
    Result<void> survey_all(const StoredWeight& table, CheckpointModel& model);
    Result<void> check_unread(const Survey& all, CheckpointModel& model) const;
    void heads(uint64_t layer, AttentionPart& part);
    void feed_forward(uint64_t layer, FeedForward& part);

    const Checkpoint& files_;
    const Family& family_;
    const ModelConfig& config_;
    const WeightNames& names_;
    std::string root_;
    std::optional<Error> error_;
};

}  // namespace fovea
