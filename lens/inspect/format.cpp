#include <fovea/inspect/format.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace fovea {
namespace {

// Exactly rounded and independent of the locale.
std::string digits(double value, std::chars_format format, int precision) {
    std::array<char, 512> text;
#if defined(__EMSCRIPTEN__)
    // The digits are the same: the page's printf rounds exactly and knows one locale. The tables of to_chars
    // with a precision would add 98 KiB to the page.
    const char* const pattern = format == std::chars_format::fixed        ? "%.*f"
                                : format == std::chars_format::scientific ? "%.*e"
                                                                          : "%.*g";
    const int size = std::snprintf(text.data(), text.size(), pattern, precision, value);
    return {text.data(), size_t(std::clamp(size, 0, int(text.size()) - 1))};
#else
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format, precision).ptr;
    return {text.data(), end};
#endif
}

std::string without_trailing_zeros(std::string number) {
    const size_t exponent = std::min(number.find('e'), number.size());
    if (number.find('.') >= exponent) return number;
    size_t end = exponent;
    while (number[end - 1] == '0') --end;
    if (number[end - 1] == '.') --end;
    return number.erase(end, exponent - end);
}

std::string not_finite_text(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

// The widths, choices and nested brackets of one printed tensor.
class Printer {
  public:
    Printer(const F32Tensor& tensor, const PrintOptions& options)
        : tensor_(tensor),
          options_(options),
          summarised_(tensor.values.size() > options.summarise_above),
          shown_(shown_values()),
          notation_(options.as_boolean ? Notation::boolean : notation_of(shown_)),
          width_(width()) {}

    std::string print() const {
        std::string text = "tensor(";
        text += tensor_.rank() == 0 ? element(tensor_.values[0]) : block(0, 0, kFirstIndent);
        return text += ')';
    }

  private:
    static constexpr size_t kFirstIndent = 7;  // "tensor("

    bool cut(uint64_t count) const { return summarised_ && count > 2 * options_.edge_items; }

    // The indices of a dimension that are shown; the gap, if any, is after edge_items of them.
    std::vector<uint64_t> shown_indices(uint64_t count) const {
        std::vector<uint64_t> indices;
        for (uint64_t i = 0; i < count; ++i) {
            if (cut(count) && i == options_.edge_items) i = count - options_.edge_items;
            indices.push_back(i);
        }
        return indices;
    }

    std::vector<float> shown_values() const {
        if (!summarised_) return tensor_.values;
        std::vector<uint64_t> offsets = {0};
        for (const uint64_t count : tensor_.shape) {
            std::vector<uint64_t> deeper;
            for (const uint64_t offset : offsets) {
                for (const uint64_t i : shown_indices(count)) deeper.push_back(offset * count + i);
            }
            offsets = std::move(deeper);
        }
        std::vector<float> values;
        for (const uint64_t offset : offsets) values.push_back(tensor_.values[offset]);
        return values;
    }

    // Zeros and infinities do not widen a column; in a boolean tensor everything counts.
    size_t width() const {
        size_t widest = 1;
        for (const float value : shown_) {
            const bool counts = notation_ == Notation::boolean || (std::isfinite(value) && value != 0.0f);
            if (counts) widest = std::max(widest, element_text(value, notation_).size());
        }
        return widest;
    }

    std::string element(float value) const {
        std::string text = element_text(value, notation_);
        return text.size() < width_ ? std::string(width_ - text.size(), ' ') + text : text;
    }

    std::string vector(uint64_t first, size_t indent) const {
        std::vector<std::string> texts;
        for (const uint64_t i : shown_indices(tensor_.columns())) {
            if (cut(tensor_.columns()) && texts.size() == options_.edge_items) texts.push_back(" ...");
            texts.push_back(element(tensor_.values[first + i]));
        }
        const size_t room = options_.line_width > indent ? options_.line_width - indent : 0;
        const size_t per_line = std::max<size_t>(1, room / (width_ + 2));
        std::string text = "[";
        for (size_t i = 0; i < texts.size(); ++i) {
            if (i != 0) text += i % per_line == 0 ? new_lines(1, indent) : std::string(", ");
            text += texts[i];
        }
        return text += ']';
    }

    // The part of the tensor at `index` of its dimensions before `dimension`, flattened.
    std::string block(size_t dimension, uint64_t index, size_t indent) const {
        if (dimension + 1 == tensor_.rank()) return vector(index * tensor_.columns(), indent);
        const uint64_t count = tensor_.shape[dimension];
        const std::string separator = new_lines(tensor_.rank() - dimension - 1, indent);
        std::string text = "[";
        size_t shown = 0;
        for (const uint64_t i : shown_indices(count)) {
            if (shown != 0) text += separator;
            if (cut(count) && shown == options_.edge_items) text.append("...").append(separator);
            text += block(dimension + 1, index * count + i, indent + 1);
            ++shown;
        }
        return text += ']';
    }

    // Between two parts: the lines and the indent of what follows, one deeper for the bracket that is open.
    static std::string new_lines(size_t count, size_t indent) {
        std::string text = ",";
        text.append(count, '\n').append(indent + 1, ' ');
        return text;
    }

    const F32Tensor& tensor_;
    const PrintOptions& options_;
    bool summarised_;
    std::vector<float> shown_;
    Notation notation_;
    size_t width_;
};

}  // namespace

std::string_view notation_name(Notation notation) {
    switch (notation) {
        case Notation::integer:
            return "integer";
        case Notation::fixed:
            return "fixed";
        case Notation::scientific:
            return "scientific";
        case Notation::boolean:
            return "boolean";
    }
    return "";
}

Notation notation_of(std::span<const float> values) {
    double largest = 0.0, smallest = 0.0;
    bool whole = true;
    for (const float value : values) {
        if (!std::isfinite(value) || value == 0.0f) continue;
        const double magnitude = std::fabs(static_cast<double>(value));
        largest = std::max(largest, magnitude);
        smallest = smallest == 0.0 ? magnitude : std::min(smallest, magnitude);
        whole = whole && magnitude == std::floor(magnitude);
    }
    if (largest == 0.0) return Notation::integer;
    if (largest / smallest > 1000.0 || largest > 1e8 || (!whole && smallest < 1e-4))
        return Notation::scientific;
    return whole ? Notation::integer : Notation::fixed;
}

std::string element_text(float value, Notation notation) {
    if (notation == Notation::boolean) return value != 0.0f ? "True" : "False";
    if (!std::isfinite(value)) return not_finite_text(value);
    switch (notation) {
        case Notation::integer:
            return digits(value, std::chars_format::fixed, 0) + ".";
        case Notation::scientific:
            return digits(value, std::chars_format::scientific, 4);
        default:
            return digits(value, std::chars_format::fixed, 4);
    }
}

std::string print_tensor(const F32Tensor& tensor, const PrintOptions& options) {
    return Printer(tensor, options).print();
}

std::string format_number(double value, int significant) {
    if (!std::isfinite(value)) return not_finite_text(value);
    if (value == 0.0) return "0";
    return without_trailing_zeros(digits(value, std::chars_format::general, significant));
}

std::string format_fixed(double value, int decimals) {
    if (!std::isfinite(value)) return not_finite_text(value);
    std::string text = digits(value, std::chars_format::fixed, decimals);
    if (text[0] == '-' && text.find_first_of("123456789") == std::string::npos) text.erase(0, 1);
    return text;
}

std::string format_value(double value, int decimals) {
    if (value == 0.0) return "0";
    const double magnitude = std::fabs(value);
    const bool readable = magnitude >= std::pow(10.0, 2 - decimals) && magnitude < 1e5;
    if (readable || !std::isfinite(value)) return format_fixed(value, decimals);
    return digits(value, std::chars_format::scientific, std::max(decimals - 1, 1));
}

std::string format_count(uint64_t count) {
    std::string text = std::to_string(count);
    for (size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
}

std::string format_bytes(uint64_t size_bytes) {
    constexpr std::array<const char*, 7> kUnits = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    double value = static_cast<double>(size_bytes);
    size_t unit = 0;
    for (; value >= 1024.0 && unit + 1 < kUnits.size(); ++unit) value /= 1024.0;
    return format_number(value, value >= 1000.0 ? 4 : 3) + kUnits[unit];
}

std::string format_seconds(double seconds) {
    if (!std::isfinite(seconds)) return not_finite_text(seconds) + " s";
    constexpr std::array<const char*, 4> kUnits = {" s", " ms", " us", " ns"};
    size_t unit = 0;
    for (; std::fabs(seconds) < 0.9995 && seconds != 0.0 && unit + 1 < kUnits.size(); ++unit)
        seconds *= 1000.0;
    return format_number(seconds, std::fabs(seconds) >= 1000.0 ? 6 : 3) + kUnits[unit];
}

std::string format_scaled(double value, std::string_view unit) {
    constexpr std::array<const char*, 7> kPrefixes = {" ", " k", " M", " G", " T", " P", " E"};
    size_t prefix = 0;
    for (; std::fabs(value) >= 999.5 && prefix + 1 < kPrefixes.size(); ++prefix) value /= 1000.0;
    return format_number(value, 3) + kPrefixes[prefix] + std::string(unit);
}

}  // namespace fovea
