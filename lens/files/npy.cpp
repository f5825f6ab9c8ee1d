// npy files as tensors, and back.
#include <algorithm>
#include <cstring>

#include <fovea/files.hpp>

#include "files/encoders.hpp"
#include "files/mapped_file.hpp"
#include "files/npy_header.hpp"
#include "files/refusal.hpp"

namespace fovea {
namespace files {
namespace {

void reverse_each(std::span<std::byte> bytes, size_t element_bytes) {
    for (size_t at = 0; at < bytes.size(); at += element_bytes)
        std::reverse(bytes.begin() + static_cast<ptrdiff_t>(at),
                     bytes.begin() + static_cast<ptrdiff_t>(at + element_bytes));
}

/// Converts elements from Fortran order (first dimension fastest) to C order. It counts up the C index and
/// keeps the Fortran offset in step.
void transpose(const NpyHeader& header, std::span<const std::byte> from, std::span<std::byte> to) {
    const size_t element_bytes = dtype_bytes(header.type);
    std::array<uint64_t, kMaxRank> stride{}, index{};
    uint64_t step = element_bytes;
    for (size_t i = 0; i < header.rank; ++i) {
        stride[i] = step;
        step *= header.dims[i];
    }
    uint64_t source = 0;
    for (size_t at = 0; at < to.size(); at += element_bytes) {
        std::memcpy(to.data() + at, from.data() + source, element_bytes);
        for (size_t i = header.rank; i-- > 0;) {
            source += stride[i];
            if (++index[i] < header.dims[i]) break;
            source -= stride[i] * header.dims[i];
            index[i] = 0;
        }
    }
}

}  // namespace

Result<Tensor> npy_tensor(const NpyHeader& header, std::span<const std::byte> file,
                          std::shared_ptr<const void> owner) {
    const uint64_t present = file.size() - header.data_offset;
    if (present != header.data_size_bytes)
        return malformed("data", cat("byte ", header.data_offset, ": ", present, " bytes of data, shape ",
                                     format_shape(header.shape()), " of ", dtype_name(header.type), " needs ",
                                     header.data_size_bytes));
    const auto data = file.subspan(static_cast<size_t>(header.data_offset));
    const auto shape = header.shape();
    Tensor tensor{{}, header.type, {shape.begin(), shape.end()}, data, std::move(owner)};
    const bool reorder = header.fortran_order && header.rank > 1;
    if (!header.big_endian && !reorder) return tensor;
    Buffer buffer;
    if (!buffer.allocate(data.size())) return out_of_memory("data", data.size());
    if (reorder)
        transpose(header, data, buffer.bytes());
    else
        std::copy(data.begin(), data.end(), buffer.bytes().begin());
    if (header.big_endian) reverse_each(buffer.bytes(), dtype_bytes(header.type));
    tensor.bytes = buffer.bytes();
    tensor.owner = buffer.owner();
    return tensor;
}

Encoded encode_npy(const Tensor& tensor, ByteSink& sink) {
    if (auto error = check_size(tensor.name, tensor.type, tensor.shape, tensor.bytes.size())) return error;
    const auto prefix = npy_prefix(tensor);
    if (!prefix) return prefix.error();
    if (sink.write_text(prefix.value())) sink.write(tensor.bytes);
    return std::nullopt;
}

}  // namespace files

Result<Tensor> parse_npy(std::span<const std::byte> file, std::shared_ptr<const void> owner) {
    const auto header = files::read_npy_header(file);
    if (!header) return header.error();
    return files::npy_tensor(header.value(), file, std::move(owner));
}

Result<Tensor> load_npy(const std::filesystem::path& path) {
    auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    auto tensor = parse_npy(file.value()->bytes(), file.value());
    if (!tensor) return files::in_file(path, tensor.error());
    tensor.value().name = files::stem_text(path);
    return tensor;
}

Result<uint64_t> save_npy(const std::filesystem::path& path, const Tensor& tensor) {
    return files::write_file(path, [&](files::ByteSink& sink) { return files::encode_npy(tensor, sink); });
}

}  // namespace fovea
