#include "files/buffer.hpp"

#include "files/refusal.hpp"

namespace fovea::files {

Result<uint64_t> checked_size_bytes(FoveaDtype type, std::span<const uint64_t> shape) {
    if (shape.size() > kMaxRank)
        return malformed("shape", cat("shape has ", shape.size(), " dimensions, the limit is ", kMaxRank));
    uint64_t size_bytes = dtype_bytes(type);
    bool empty = false;
    for (const uint64_t dim : shape) {
        if (dim > kMaxDim)
            return malformed("shape", cat("shape has a dimension of ", dim, ", the limit is ", kMaxDim));
        empty = empty || dim == 0;
    }
    if (empty) return uint64_t{0};
    for (const uint64_t dim : shape) {
        const auto product = checked_product(size_bytes, dim);
        if (!product)
            return malformed("shape", cat("shape ", format_shape(shape), " of ", dtype_name(type),
                                          " needs more than 2^64 - 1 bytes"));
        size_bytes = *product;
    }
    return size_bytes;
}

std::optional<Error> check_size(std::string_view name, FoveaDtype type, std::span<const uint64_t> shape,
                                uint64_t size_bytes) {
    if (!has_use(type, kUseElement))
        return bad_argument("type", cat("tensor '", printable_name(name), "': ", dtype_name(type),
                                        " is not a type of tensors in files"));
    auto expected = checked_size_bytes(type, shape);
    if (!expected) {
        Error error = expected.error();
        error.text = cat("tensor '", printable_name(name), "': ", error.text);
        return error;
    }
    if (expected.value() == size_bytes) return std::nullopt;
    return bad_argument("bytes",
                        cat("tensor '", printable_name(name), "': ", size_bytes, " bytes given, shape ",
                            format_shape(shape), " of ", dtype_name(type), " needs ", expected.value()));
}

}  // namespace fovea::files
