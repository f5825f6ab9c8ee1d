#include "data/base64.hpp"

namespace fovea::visualizer {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::span<const std::byte> bytes, bool for_address) {
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t word = 0;
        const size_t count = std::min<size_t>(3, bytes.size() - i);
        for (size_t b = 0; b < 3; ++b) word = word << 8 | (b < count ? uint32_t(bytes[i + b]) : 0);
        for (size_t c = 0; c < 4; ++c) {
            if (c <= count)
                text += kBase64[word >> (18 - 6 * c) & 63];
            else if (!for_address)
                text += '=';
        }
    }
    if (for_address)
        for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
    return text;
}

std::optional<std::vector<uint8_t>> from_base64(std::string_view text) {
    std::vector<uint8_t> bytes;
    uint32_t word = 0, bits = 0;
    for (char c : text) {
        if (c == '=') break;
        c = c == '-' ? '+' : c == '_' ? '/' : c;
        const size_t at = kBase64.find(c);
        if (at == std::string_view::npos) return std::nullopt;
        word = word << 6 | uint32_t(at);
        if ((bits += 6) >= 8) bytes.push_back(uint8_t(word >> (bits -= 8)));
    }
    return bytes;
}

}  // namespace fovea::visualizer
