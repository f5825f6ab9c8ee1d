// A file of tensors that the reader opened, what its names suggest, and queries, keys and values made of it.
#pragma once

#include "document/projected.hpp"

#include <fovea/files.hpp>
#include <fovea/files/attention_notes.hpp>

#include <filesystem>
#include <memory>
#include <optional>

namespace fovea::visualizer {

struct ImportedFile {
    std::string path;
    TensorSet set;
    AttentionNotes notes;             // read from its metadata
    std::vector<std::string> tokens;  // the file's own; may be empty
    uint32_t layers = 0;              // for a model's weights
    mutable std::string sha256;       // hash of the file, once a session that names it was saved or opened
};

// Reads safetensors, npy, npz, csv and png. The error is one line for a person.
Result<std::shared_ptr<const ImportedFile>> open_import(const std::filesystem::path& path);

// The layer that a tensor's name tells ("h.3.attn...", "layers.3.q"), and the same name of another layer; the
// name itself where it tells none.
std::optional<uint32_t> layer_in(std::string_view name);
std::string name_in_layer(const std::string& name, uint32_t layer);

// The layers whose queries and keys the settings' file has, in rising order.
std::vector<uint32_t> layers_of(const Settings& settings);

// Guesses a mapping from the names, shapes and notes of the file.
ImportMapping guess_mapping(const ImportedFile& file);

// Settings that show the file: its mapping, and the mask, scale and softcap that its notes give.
Settings settings_for(std::shared_ptr<const ImportedFile> file, const Settings& before);

// The mapped tensors as an attention call's inputs. Errors name the tensor, what was found and what was
// expected.
Result<Projected> project_import(const Settings& settings);

// Tensors that can be shown as matrices, besides q, k and v: [rows, columns] or [heads, rows, columns].
// Those too large or of another rank are left out.
struct FileTable {
    std::string name, formula;
    F32Tensor values;
};
std::vector<FileTable> import_tables(const Settings& settings);

}  // namespace fovea::visualizer
