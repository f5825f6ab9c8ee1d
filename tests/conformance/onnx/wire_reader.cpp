#include "onnx/wire_reader.hpp"

namespace fovea::onnx {

Error WireReader::malformed(const char* what) const {
    return Error{FOVEA_INVALID_ARGUMENT, "protobuf",
                 std::string(what) + " at byte " + std::to_string(size_ - rest_.size()) + " of " +
                     std::to_string(size_)};
}

Result<uint64_t> WireReader::varint() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 70; shift += 7) {
        if (rest_.empty()) return malformed("a number is cut off");
        const auto byte = uint64_t(rest_.front());
        if (shift == 63 && byte > 1) return malformed("a number does not fit 64 bits");
        rest_ = rest_.subspan(1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    return malformed("a number does not fit 64 bits");
}

Result<uint64_t> WireReader::fixed(size_t size_bytes) {
    if (rest_.size() < size_bytes) return malformed("a number is cut off");
    uint64_t value = 0;
    for (size_t n = 0; n < size_bytes; ++n) value |= uint64_t(rest_[n]) << (8 * n);
    rest_ = rest_.subspan(size_bytes);
    return value;
}

Result<bool> WireReader::next(WireField& field) {
    field = WireField{};
    if (rest_.empty()) return false;
    const Result<uint64_t> tag = varint();
    if (!tag) return tag.error();
    if (*tag >> 3 == 0 || *tag >> 3 > 0x1fffffff) return malformed("a field number is out of range");
    field.number = uint32_t(*tag >> 3);
    field.type = WireType(*tag & 7);
    Result<uint64_t> value = 0;
    switch (field.type) {
        case WireType::varint:
        case WireType::bytes:
            value = varint();
            break;
        case WireType::fixed64:
            value = fixed(8);
            break;
        case WireType::fixed32:
            value = fixed(4);
            break;
        default:
            return malformed("a field has an unknown wire type");
    }
    if (!value) return value.error();
    if (field.type != WireType::bytes) {
        field.value = *value;
        return true;
    }
    if (*value > rest_.size()) return malformed("a field is longer than its message");
    field.bytes = rest_.first(size_t(*value));
    rest_ = rest_.subspan(size_t(*value));
    return true;
}

}  // namespace fovea::onnx
