// Stored weights as float32, every value with ggml's bits.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fovea/files/checkpoint.hpp>

#include "files/buffer.hpp"
#include "files/refusal.hpp"
#include "problem/weight_blocks.hpp"

namespace fovea {
namespace {

uint32_t byte_at(const std::byte* at) { return std::to_integer<uint32_t>(*at); }
uint32_t low_nibble(const std::byte* at) { return byte_at(at) & 15u; }
uint32_t high_nibble(const std::byte* at) { return byte_at(at) >> 4; }

template <class Number>
Number read_as(const std::byte* at) {
    Number value;
    std::memcpy(&value, at, sizeof value);
    return value;
}
float half_at(const std::byte* at) { return fovea::half_at(reinterpret_cast<const unsigned char*>(at)); }

// q4_0: f16 scale, 16 bytes of which byte j holds values j (low) and j + 16 (high), each 8 too large.
void q4_0(const std::byte* b, float* y) {
    const float d = half_at(b);
    for (uint32_t j = 0; j < 16; ++j) {
        y[j] = float(int(low_nibble(b + 2 + j)) - 8) * d;
        y[j + 16] = float(int(high_nibble(b + 2 + j)) - 8) * d;
    }
}

void q8_0(const std::byte* b, float* y) {
    const float d = half_at(b);
    for (uint32_t j = 0; j < 32; ++j) y[j] = float(read_as<int8_t>(b + 2 + j)) * d;
}

}  // namespace

uint64_t StoredWeight::rows() const {
    uint64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    return rows;
}

void dequantise(FoveaDtype type, std::span<const std::byte> blocks, std::span<float> out) {
    const uint64_t step = dtype_info(type).block.numbers, size = dtype_bytes(type);
    if (!has_use(type, kUseFile)) return;
    // Converts only whole blocks, whatever the sizes of the spans.
    const uint64_t count = std::min(blocks.size() / size, out.size() / step);
    const std::byte* b = blocks.data();
    float* const end = out.data() + count * step;
    for (float* y = out.data(); y != end; y += step, b += size) {
        switch (type) {
            case FOVEA_F32:
                *y = read_as<float>(b);
                break;
            case FOVEA_F16:
                *y = half_at(b);
                break;
            case FOVEA_BF16:
                *y = bfloat_to_float(read_as<uint16_t>(b));
                break;
            case FOVEA_F64:
                *y = float(read_as<double>(b));
                break;
            case FOVEA_Q4_0:
                q4_0(b, y);
                break;
            case FOVEA_Q8_0:
                q8_0(b, y);
                break;
            default:
                with_weight_block(type, [&](auto block) {
                    widen_block<decltype(block)>(reinterpret_cast<const unsigned char*>(b), y);
                });
        }
    }
}

Result<void> read_rows(const StoredWeight& weight, uint64_t first, std::span<float> out) {
#ifdef FOVEA_NO_STORED_WEIGHTS  // a module that opens no model's files
    return Error{FOVEA_UNSUPPORTED, "weight", "stored"};
#endif
    const auto refuse = [&](std::string_view why) {
        return files::unsupported("dtype", files::cat("tensor '", printable_name(weight.name), "' ", why));
    };
    if (!has_use(weight.type, kUseFile))
        return refuse(files::cat("is stored as ", printable_name(weight.type_text, 24),
                                 "; the supported types are f32, f16, bf16, f64, q4_0, q4_1, q5_0, q5_1, "
                                 "q8_0, q4_k, q5_k and q6_k"));
    const uint64_t columns = weight.columns(), count = columns == 0 ? 0 : out.size() / columns;
    if (count > weight.rows() || first > weight.rows() - count)
        return refuse(files::cat("has ", weight.rows(), " rows; row ", first + count, " was requested"));
    const uint64_t block_elements = dtype_info(weight.type).block.numbers;
    const uint64_t row_bytes = columns / block_elements * dtype_bytes(weight.type);
    if (columns % block_elements != 0 || out.size() != count * columns)
        return refuse(files::cat("has rows of ", columns, " elements in blocks of ", block_elements, "; ",
                                 out.size(), " elements do not fill whole rows and blocks"));
    const uint64_t held = weight.file ? weight.size_bytes : weight.bytes.size();
    if ((first + count) * row_bytes > held)
        return refuse(files::cat("has ", held, " bytes; its rows need ", weight.rows() * row_bytes));
    if (!weight.file) {
        dequantise(weight.type, weight.bytes.subspan(first * row_bytes, count * row_bytes), out);
        return {};
    }
    constexpr uint64_t kStretchBytes = uint64_t{1} << 20;
    const uint64_t step = std::max<uint64_t>(1, kStretchBytes / std::max<uint64_t>(1, row_bytes));
    files::Buffer stretch;
    if (!stretch.allocate(std::min(step, count) * row_bytes))
        return files::out_of_memory("tensor", std::min(step, count) * row_bytes);
    for (uint64_t done = 0; done < count; done += step) {
        const uint64_t rows = std::min(step, count - done);
        const auto bytes = stretch.bytes().first(size_t(rows * row_bytes));
        if (Result<void> r = weight.file->read(weight.place + (first + done) * row_bytes, bytes); !r)
            return r;
        dequantise(weight.type, bytes, out.subspan(size_t(done * columns), size_t(rows * columns)));
    }
    return {};
}

}  // namespace fovea
