#include "page_state.hpp"

#include <cstdlib>

namespace fovea::web {
namespace {

constexpr char kTokenSeparator = '\x1f';
constexpr uint64_t kMaxTokens = 4096, kMaxWidth = 4096, kMaxHeads = 64;

void split_tokens(std::string_view text, std::vector<std::string>& out) {
    out.clear();
    while (!text.empty()) {
        const size_t end = text.find(kTokenSeparator);
        out.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
}

uint32_t u32_of(const std::string& value) {
    return static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
}
uint64_t u64_of(const std::string& value) { return std::strtoull(value.c_str(), nullptr, 10); }
double f64_of(const std::string& value) { return std::strtod(value.c_str(), nullptr); }

void set_shape(PageState& s, std::string_view key, const std::string& value) {
    if (key == "din") s.d_in = u32_of(value);
    if (key == "dout") s.d_out = u32_of(value);
    if (key == "heads") s.heads = u32_of(value);
    if (key == "kv") s.kv_heads = u32_of(value);
    if (key == "stacked") s.stacked = value == "1";
    if (key == "projects") s.projects = value == "1";
    if (key == "joint") s.joint = value == "1";
    if (key == "rows") s.rows = u32_of(value);
    if (key == "keys") s.keys = u32_of(value);
    if (key == "dim") s.dim = u32_of(value);
    if (key == "dimv") s.dim_v = u32_of(value);
}

void set_meaning(PageState& s, std::string_view key, const std::string& value) {
    if (key == "div") s.divisor = f64_of(value);
    if (key == "temp") s.temperature = f64_of(value);
    if (key == "causal") s.causal = value == "1";
    if (key == "renorm") s.renormalise = value == "1";
    if (key == "window") s.window = std::strtoll(value.c_str(), nullptr, 10);
    if (key == "alibi") s.alibi = value == "1";
    if (key == "softcap") s.softcap = f64_of(value);
    if (key == "mask") s.mask = value;
}

void set_random(PageState& s, std::string_view key, const std::string& value) {
    if (key == "init")
        s.init = value == "none"     ? WeightInit::none
                 : value == "linear" ? WeightInit::linear
                                     : WeightInit::rand;
    if (key == "seed") s.seed = u64_of(value);
    if (key == "p") s.dropout_p = f64_of(value);
    if (key == "dseed") s.dropout_seed = u64_of(value);
    if (key == "variant")
        s.variant = value == "mkl"       ? DropoutVariant::mkl
                    : value == "counter" ? DropoutVariant::counter
                                         : DropoutVariant::native;
}

std::string limit(const char* name, uint64_t value, uint64_t low, uint64_t high) {
    return std::string(name) + " is " + std::to_string(value) + "; it must be " + std::to_string(low) +
           " to " + std::to_string(high);
}

std::string check(const PageState& s) {
    const bool own_tensors = s.rows != 0;
    const uint64_t rows = own_tensors ? s.rows : s.tokens.size();
    if (rows < 1 || rows > kMaxTokens) return limit("the token count", rows, 1, kMaxTokens);
    if (s.heads < 1 || s.heads > kMaxHeads) return limit("heads", s.heads, 1, kMaxHeads);
    if (s.kv_heads < 1 || s.kv_heads > s.heads) return limit("KV heads", s.kv_heads, 1, s.heads);
    if (s.heads % s.kv_heads)
        return "heads (" + std::to_string(s.heads) + ") must be a multiple of KV heads (" +
               std::to_string(s.kv_heads) + ")";
    if (!(s.temperature > 0)) return "the temperature must be above 0";
    if (!(s.dropout_p >= 0 && s.dropout_p < 1)) return "dropout must be at least 0 and below 1";
    if (!(s.softcap >= 0)) return "softcap must not be negative";
    const uint64_t keys = own_tensors ? s.keys : rows;
    if (!s.mask.empty() && s.mask.size() != rows * keys)
        return limit("the mask's cell count", s.mask.size(), rows * keys, rows * keys);
    if (own_tensors) {
        if (s.keys < 1 || s.keys > kMaxTokens) return limit("the key count", s.keys, 1, kMaxTokens);
        if (s.dim < 1 || s.dim > kMaxWidth) return limit("the head width", s.dim, 1, kMaxWidth);
        return {};
    }
    if (s.d_in < 1 || s.d_in > kMaxWidth) return limit("the input width", s.d_in, 1, kMaxWidth);
    if (s.d_out < 1 || s.d_out > kMaxWidth) return limit("the output width", s.d_out, 1, kMaxWidth);
    if (s.d_out % s.heads)
        return "the output width (" + std::to_string(s.d_out) + ") must be a multiple of heads (" +
               std::to_string(s.heads) + ")";
    return {};
}

}  // namespace

std::string parse_page_state(std::string_view text, PageState& out) {
    PageState state;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        const size_t equals = line.find('=');
        if (equals != std::string_view::npos) {
            const std::string_view key = line.substr(0, equals);
            const std::string value(line.substr(equals + 1));
            if (key == "tokens") split_tokens(value, state.tokens);
            set_shape(state, key, value);
            set_meaning(state, key, value);
            set_random(state, key, value);
        }
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    if (std::string reason = check(state); !reason.empty()) return reason;
    out = std::move(state);
    return {};
}

}  // namespace fovea::web
