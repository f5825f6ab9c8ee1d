#include "fuzz_target.hpp"

#include <fovea/files/checkpoint.hpp>

#include <algorithm>

using namespace fovea;

namespace {

void check_value(const GgufValue& value) {
    value.whole(), value.number(), value.truth();
    if (const auto text = value.text())
        fuzz::require(text->size() + 8 == value.bytes.size(), "a text ends where its value does");
    if (const auto texts = value.texts())
        fuzz::require(texts->size() == value.count, "an array has as many texts as it says");
    if (const auto numbers = value.numbers(); numbers && value.is_array)
        fuzz::require(numbers->size() == value.count, "an array has as many numbers as it says");
}

// Type, shape and bytes agree, and every row can be read.
void check_weight(const StoredWeight& weight) {
    if (weight.type == FOVEA_DTYPE_OTHER) return;
    const uint64_t blocks = weight.columns() / dtype_info(weight.type).block.numbers * weight.rows();
    fuzz::require(weight.bytes.size() == blocks * dtype_bytes(weight.type), "bytes match the shape");
    std::vector<float> all(weight.rows() * weight.columns());
    fuzz::require(read_rows(weight, 0, all).has_value(), "a loaded weight converts to float32");
}

// The same bytes as a file that is read a piece at a time.
class Read final : public StoredFile {
  public:
    explicit Read(std::span<const std::byte> bytes) : bytes_(bytes) {}
    uint64_t size_bytes() const noexcept override { return bytes_.size(); }
    Result<void> read(uint64_t first, std::span<std::byte> out) const override {
        fuzz::require(first <= bytes_.size() && out.size() <= bytes_.size() - first, "reads lie in the file");
        // memcpy must not be called for zero bytes, which are possible here.
        std::ranges::copy(bytes_.subspan(first, out.size()), out.begin());
        return {};
    }

  private:
    std::span<const std::byte> bytes_;
};

void check_read(std::span<const std::byte> bytes, const Result<GgufFile>& mapped) {
    const Result<GgufFile> file = read_gguf(std::make_shared<Read>(bytes));
    fuzz::require(file.has_value() == mapped.has_value(), "mapped or read, it is the same file");
    if (!file) return fuzz::require(file.error().text == mapped.error().text, "and the same error");
    fuzz::require(file->weights.size() == mapped->weights.size(), "with the same weights");
    for (size_t i = 0; i < file->weights.size(); ++i) {
        const StoredWeight &a = file->weights[i], &b = mapped->weights[i];
        if (a.type == FOVEA_DTYPE_OTHER) continue;
        std::vector<float> x(a.rows() * a.columns()), y(x.size());
        fuzz::require(read_rows(a, 0, x).has_value() && read_rows(b, 0, y).has_value() &&
                          std::ranges::equal(std::as_bytes(std::span(x)), std::as_bytes(std::span(y))),
                      "of the same bits");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto file = fuzz::at_cost(size, [&] { return parse_gguf(fuzz::as_bytes(data, size)); });
    check_read(fuzz::as_bytes(data, size), file);
    if (!file) {
        fuzz::check_error(file.error());
        return 0;
    }
    for (const GgufValue& value : file->metadata) {
        check_value(value);
        fuzz::require(file->find(value.key) == &value, "a key is there once");
    }
    for (const StoredWeight& weight : file->weights) check_weight(weight);
    return 0;
}
