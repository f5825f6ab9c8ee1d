// The weights of a model as its files store them: a Hugging Face folder (config.json, safetensors in one or
// many files) or a GGUF file (versions 2 and 3). Weights stay mapped and in the type that they are stored in;
// rows become float32 when they are asked for.
//
// What the readers of <fovea/files.hpp> promise holds here: the whole header is checked before memory is
// allocated for what it claims, errors name the tensor or key, the byte, the value found and the limit, and
// no function throws, prints or keeps state.
#pragma once

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>

namespace fovea {

// A file that cannot be mapped, as those of a browser cannot: its bytes are read when they are asked for.
class StoredFile {
  public:
    virtual ~StoredFile() = default;
    virtual uint64_t size_bytes() const noexcept = 0;
    // All of its bytes, where they are in memory; they stay there as long as the file.
    virtual std::span<const std::byte> held() const noexcept { return {}; }
    // Reads bytes [first, first + out.size()), which must be within the file. Fails if they can no longer be
    // read. Call it from one thread at a time.
    virtual Result<void> read(uint64_t first, std::span<std::byte> out) const = 0;
};

// One weight. Copying it copies no values.
struct StoredWeight {
    std::string name;                        // as the file has it: untrusted text, see printable_name()
    FoveaDtype type = FOVEA_DTYPE_OTHER;     // one of kUseFile, else OTHER: such values cannot be read
    std::string type_text;                   // as the file calls it: "BF16", "Q4_K"
    std::vector<uint64_t> shape;             // last dimension fastest, whatever order the file counts them in
    uint64_t size_bytes = 0;                 // 0 where the size of OTHER is not known
    std::span<const std::byte> bytes;        // all of them where the file is mapped, else none
    std::shared_ptr<const void> owner;       // keeps `bytes` alive
    std::shared_ptr<const StoredFile> file;  // where it is not mapped: what they are read from,
    uint64_t place = 0;                      // and from which byte on

    uint64_t columns() const { return shape.empty() ? 1 : shape.back(); }
    uint64_t rows() const;
};

// Rows [first, first + out.size() / columns) as float32; out.size() is a multiple of columns. Exact for f16
// and bf16; of quantised types float32 products of what the block holds, in ggml's order of operations.
// Rejects type OTHER, rows that the weight does not have, and files that can no longer be read.
Result<void> read_rows(const StoredWeight& weight, uint64_t first, std::span<float> out);
// Blocks to float32, as many whole ones as both spans hold; none of OTHER.
void dequantise(FoveaDtype type, std::span<const std::byte> blocks, std::span<float> out);

// ---- GGUF ----
/// Types of the values of a file's metadata, numbered as in the format.
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

// One value of a file's metadata: a view of the mapped file.
struct GgufValue {
    std::string_view key;
    GgufType type = GgufType::u8;  // for an array, the type of its elements
    bool is_array = false;
    uint64_t count = 1;                // elements
    std::span<const std::byte> bytes;  // the elements one after the other, as the file has them

    // A whole number of any of the types, not of a negative one; and any number as float64.
    std::optional<uint64_t> whole() const;
    std::optional<double> number() const;
    std::optional<bool> truth() const;
    std::optional<std::string_view> text() const;
    // Elements of an array, or nothing where it has another type. They allocate what they return.
    std::optional<std::vector<std::string_view>> texts() const;
    std::optional<std::vector<double>> numbers() const;
};

// A valid GGUF file: at most 1,000,000 keys and 1,000,000 tensors, 4 dimensions of up to 2^48, keys and names
// of at most 65,535 bytes. The reader also rejects other versions, big-endian files, arrays of arrays,
// duplicate keys or names, rows that are not a multiple of the block size, and tensors that overlap, leave
// the data or are misaligned.
struct GgufFile {
    uint32_t version = 3;
    std::vector<GgufValue> metadata;  // in file order
    std::vector<StoredWeight> weights;
    std::shared_ptr<const void> owner;

    const GgufValue* find(std::string_view key) const noexcept;
};
/// Maps a file into memory and reads its header; the result keeps the mapping alive.
Result<GgufFile> load_gguf(const std::filesystem::path& path);
// `file` must outlive the result, or `owner` keeps it alive.
Result<GgufFile> parse_gguf(std::span<const std::byte> file, std::shared_ptr<const void> owner = {});
// Keeps the header in memory, nothing else.
Result<GgufFile> read_gguf(std::shared_ptr<const StoredFile> file);

// ---- a checkpoint of either kind ----

// The weights of a model and what its files say of it.
struct Checkpoint {
    std::filesystem::path path;    // as it was given
    std::filesystem::path folder;  // the folder of config.json and tokenizer.json; empty for GGUF
    std::vector<StoredWeight> weights;
    JsonValue config;              // config.json; null's value for GGUF
    JsonValue generation_config;   // generation_config.json; null's value where there is none
    std::optional<GgufFile> gguf;  // the GGUF metadata; the weights are moved to `weights`

    // Null when there is none.
    const StoredWeight* find(std::string_view name) const noexcept;
    uint64_t stored_bytes() const noexcept;

    std::vector<uint32_t> by_name;                   // `weights` in the order of their names
    std::vector<std::shared_ptr<const void>> parts;  // owners of the other parts of a split GGUF file
};
// Opens a folder with config.json and safetensors (those of model.safetensors.index.json, else
// model.safetensors, else all *.safetensors), one of its safetensors files, a GGUF file, any part of a split
// one (the others must be in the same folder), or a folder that contains only one of these.
Result<Checkpoint> load_checkpoint(const std::filesystem::path& path);
// The same of files that a program holds: those of one folder, or all parts of a GGUF file.
struct NamedFile {
    std::string name;  // without a folder
    std::shared_ptr<const StoredFile> file;
};
Result<Checkpoint> load_checkpoint(std::span<const NamedFile> files);

}  // namespace fovea
