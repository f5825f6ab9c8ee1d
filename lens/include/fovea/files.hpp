#pragma once
// Tensors in files: safetensors, npy, npz, csv and png in and out, GGUF in, and the attention weights of two
// families of models. Part of the library `fovea_files`, which needs no Vulkan and no engine.
//
// Every reader promises (files are untrusted):
//  - The whole file is checked before memory is allocated for its claimed contents. A rejected file costs at
//    most its own size plus a small constant, whatever sizes it claims.
//  - Errors are values. The text names the tensor (or row, or chunk), the byte offset, the value found and
//    the limit; names taken from the file are escaped in it, so that they are safe to print.
//  - Values are not judged: NaN and infinity are loaded unchanged.
// Every writer checks everything first, writes a temporary file in the target's folder and renames it. After
// a failure there is the old file or none, never half a file.
//
// All functions are safe from any thread on different objects. None throws; none prints; none keeps state.
#include <fovea/dtype.hpp>
#include <fovea/fovea.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

/// A shape as text: "[2, 6, 3]".
std::string format_shape(std::span<const uint64_t> shape);

/// A tensor as a value: copying it copies the name and shape, never the data. Its type is one of
/// kUseElement; FOVEA_BOOL is one byte: 0 is false, anything else true.
/// Elements are contiguous, last dimension fastest, in the host's byte order. An empty shape is one scalar.
struct Tensor {
    std::string name;  // as the file has it: untrusted text, see printable_name()
    FoveaDtype type = FOVEA_F32;
    std::vector<uint64_t> shape;
    std::span<const std::byte> bytes;   // element_count() * dtype_bytes(type); not necessarily aligned
    std::shared_ptr<const void> owner;  // keeps `bytes` alive: a mapped file or a buffer
};

/// Product of the dimensions; 1 for a scalar. Exact for every tensor that this library made.
uint64_t element_count(const Tensor& tensor) noexcept;

/// Makes a tensor that owns a copy of `bytes`. Fails if the size does not fit the shape, or without memory.
Result<Tensor> make_tensor(std::string name, FoveaDtype type, std::vector<uint64_t> shape,
                           std::span<const std::byte> bytes);
/// A float32 tensor that takes over `values`.
Result<Tensor> make_tensor(std::string name, std::vector<uint64_t> shape, std::vector<float> values);

/// The elements as float32, whatever their type: f64 and integers rounded to nearest even, bool as 0 and 1.
Result<std::vector<float>> to_f32(const Tensor& tensor);

/// Text from a file made safe for a terminal or a log: control characters, quotes and bytes that are not
/// UTF-8 are escaped as \xNN, and what is longer than `limit_bytes` ends in "...".
std::string printable_name(std::string_view name, size_t limit_bytes = 120);

/// Tensors and the file's own notes about them, in file order.
struct TensorSet {
    std::vector<Tensor> tensors;
    std::vector<std::pair<std::string, std::string>> metadata;
    /// Tensors of the file that no FoveaDtype has (an 8-bit float, a text), by name, each with the reason.
    std::vector<std::pair<std::string, std::string>> unsupported;

    /// Why find() has nothing: the reason of a tensor that is not supported, else "is not in the file".
    std::string why_missing(std::string_view name) const;
    /// Null when there is none. The pointer lives as long as the set is not changed.
    const Tensor* find(std::string_view name) const noexcept;
    const std::string* find_metadata(std::string_view key) const noexcept;
};

/// Limits a caller may tighten (a browser, a fuzzer).
struct LoadLimits {
    /// Sum of what the compressed entries of an npz, or the pixels of a png, may inflate to.
    uint64_t inflated_bytes = uint64_t{8} << 30;
};

/// Reads any of the formats; the file name's extension decides, without a known one the first bytes. A npy,
/// csv or png gives one tensor, named after the file without folder and extension.
Result<TensorSet> load_tensors(const std::filesystem::path& path, const LoadLimits& limits = {});

// ---- safetensors ----
// Limits: header 100,000,000 bytes, 1,000,000 tensors, 8 dimensions of up to 2^48, metadata 1,000,000 bytes.
// Besides broken JSON it rejects duplicate names, holes or overlaps in the data, dtypes that the format
// lacks. Tensors of its 8-bit, smaller and complex types are listed as `unsupported`.

/// Maps the file read-only; tensors are views of it and hold the mapping. A mapped file that another process
/// makes shorter while it is read ends a POSIX process with SIGBUS: do not read a file that is still being
/// written.
Result<TensorSet> load_safetensors(const std::filesystem::path& path);
/// The same for bytes in memory; tensors are views of `file`, which `owner` keeps alive (or the caller does).
Result<TensorSet> parse_safetensors(std::span<const std::byte> file, std::shared_ptr<const void> owner = {});
/// Writes tensors with the widest elements first, so that each is aligned to its element in the file. Returns
/// the file's size in bytes.
Result<uint64_t> save_safetensors(const std::filesystem::path& path, const TensorSet& set);

// ---- npy and npz ----
// npy versions 1 to 3, C and Fortran order (given out in C order), both byte orders. Object arrays are
// rejected: they hold pickles, which run code. Structured, complex and text arrays are rejected with an error
// that names the type.

Result<Tensor> load_npy(const std::filesystem::path& path);                                         // a file
Result<Tensor> parse_npy(std::span<const std::byte> file, std::shared_ptr<const void> owner = {});  // bytes
/// Version 1, C order. bf16 is rejected: the format has no name for it.
Result<uint64_t> save_npy(const std::filesystem::path& path, const Tensor& tensor);

/// Entries stored or deflated, zip64; every entry must be an npy, and is listed as `unsupported` where it
/// holds texts, structures or complex numbers. Checked by inflating twice: the first pass
/// only counts, so that a bomb is rejected before anything is allocated for it.
Result<TensorSet> load_npz(const std::filesystem::path& path, const LoadLimits& limits = {});
Result<TensorSet> parse_npz(std::span<const std::byte> file, std::shared_ptr<const void> owner = {},
                            const LoadLimits& limits = {});
struct NpzOptions {
    bool compress = true;  // deflate; false stores, and loading then is free of copies
    bool force_zip64 = false;
};
Result<uint64_t> save_npz(const std::filesystem::path& path, const TensorSet& set,
                          const NpzOptions& options = {});

// ---- csv ----

struct CsvTable {                      // columns of values
    std::vector<std::string> columns;  // empty when the file has no header line
    std::vector<std::string> rows;     // names of the rows; empty if the first column has values
    Tensor values;                     // f64 [rows, columns]
};
/// RFC 4180: commas, LF or CRLF, fields may be quoted; a UTF-8 byte order mark is skipped. A first line in
/// which no field is a number is the header; one in which only some are is rejected. Below a header the first
/// column may hold names of rows, none of which is a number. Numbers: decimal, nan, inf.
Result<CsvTable> load_csv(const std::filesystem::path& path);
Result<CsvTable> parse_csv(std::span<const std::byte> file);
/// Tensor of rank 0 to 2 (rank 1 is one column) with the fewest digits that read back to the same value.
/// With names of rows the header has a further, empty first name; they need names of columns.
Result<uint64_t> save_csv(const std::filesystem::path& path, const Tensor& tensor,
                          std::span<const std::string> columns = {}, std::span<const std::string> rows = {});

// ---- png ----
// 8 bits a channel: grey, grey and alpha, RGB, RGBA. Samples are given out as stored: no gamma, no profile.

/// u8 [height, width, channels], channels 1 to 4.
Result<Tensor> load_png(const std::filesystem::path& path, const LoadLimits& limits = {});
Result<Tensor> parse_png(std::span<const std::byte> file, const LoadLimits& limits = {});
/// u8 [height, width] or [height, width, channels].
Result<uint64_t> save_png(const std::filesystem::path& path, const Tensor& image);

// ---- models ----

/// One weight as plain float32, row-major. Not in the file: name and values empty.
struct WeightTensor {
    std::string name;  // the name it had in the file
    std::vector<uint64_t> shape;
    std::vector<float> values;
    explicit operator bool() const noexcept { return !name.empty(); }
};

/// GPT-2 (Hugging Face names `h.N.attn.*`, with or without a leading `transformer.`). Conv1D layout: weights
/// are [in, out], columns of c_attn are q, then k, then v, each [heads, head_dim] flattened.
struct Gpt2Attention {
    uint64_t embed_dim = 0, heads = 0, head_dim = 0;
    WeightTensor c_attn_weight;  // [embed_dim, 3 * embed_dim]
    WeightTensor c_attn_bias;    // [3 * embed_dim]
    WeightTensor c_proj_weight;  // [embed_dim, embed_dim]
    WeightTensor c_proj_bias;    // [embed_dim]
};
struct Gpt2Config {
    uint64_t heads = 0;  // 0: the file's metadata `n_head`
};
/// The overloads for a path also read the sizes from a `config.json` in the same folder, after the metadata.
/// Of a checkpoint in several files, give the one that holds the layer.
Result<Gpt2Attention> load_gpt2_attention(const TensorSet& checkpoint, uint64_t layer,
                                          const Gpt2Config& config = {});
Result<Gpt2Attention> load_gpt2_attention(const std::filesystem::path& safetensors, uint64_t layer,
                                          const Gpt2Config& config = {});

/// Llama and its kin (`model.layers.N.self_attn.*`, with or without the leading `model.`). Linear layout:
/// weights are [out, in]. Query head h uses key head h / (heads / kv_heads).
struct LlamaAttention {
    uint64_t embed_dim = 0, heads = 0, kv_heads = 0, head_dim = 0;
    double rope_theta = 0;
    WeightTensor q_proj, k_proj, v_proj;          // [heads or kv_heads * head_dim, embed_dim]
    WeightTensor o_proj;                          // [embed_dim, heads * head_dim]
    WeightTensor q_bias, k_bias, v_bias, o_bias;  // optional
};
struct LlamaConfig {
    // 0: the file's metadata of the same name as in a config.json (num_attention_heads, num_key_value_heads,
    // head_dim, rope_theta). If neither gives kv_heads and head_dim, they follow from the shapes. heads and
    // rope_theta are required, because a guess would silently give wrong results. A config.json whose rotary
    // embedding is scaled (rope_scaling) is rejected unless rope_theta is given here.
    uint64_t heads = 0, kv_heads = 0, head_dim = 0;
    double rope_theta = 0;
};
Result<LlamaAttention> load_llama_attention(const TensorSet& checkpoint, uint64_t layer,
                                            const LlamaConfig& config = {});
Result<LlamaAttention> load_llama_attention(const std::filesystem::path& safetensors, uint64_t layer,
                                            const LlamaConfig& config = {});

}  // namespace fovea
