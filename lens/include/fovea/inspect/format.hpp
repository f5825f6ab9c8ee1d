// Numbers, shapes and tensors as text, the same in the command line, the visualizer and the page.
// Independent of the locale; thread-safe.
#pragma once

#include <fovea/model/f32_tensor.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// How PyTorch writes the elements of one tensor; the choice is made once for the whole tensor.
enum class Notation {
    integer,     // 2.
    fixed,       // 0.1234
    scientific,  // 1.2340e-05
    boolean      // True
};
std::string_view notation_name(Notation notation);

// integer if every element that is finite and not 0 is whole (or there is none), else fixed; scientific in
// place of either where the largest of these magnitudes is over 1000 times the smallest or over 1e8, or, of
// values that are not all integers, where the smallest is under 1e-4. Never boolean.
Notation notation_of(std::span<const float> values);

// One element without padding, exactly rounded: "0.1234", "-inf", "True".
std::string element_text(float value, Notation notation);

struct PrintOptions {               // Options for printing tensors as PyTorch does.
    bool as_boolean = false;        // 0 is False, anything else True
    size_t line_width = 80;         // a longer row goes on in the next line
    size_t summarise_above = 1000;  // with more elements only the outermost of each dimension are shown
    size_t edge_items = 3;
};
// As PyTorch prints it: "tensor([[1., 2.],\n        [3., 4.]])".
std::string print_tensor(const F32Tensor& tensor, const PrintOptions& options = {});

// A number for a label or a table, `significant` digits at most and no trailing zeros: "0.2333", "1.5",
// "3.2e-07", "-inf".
std::string format_number(double value, int significant = 4);
// A fixed number of decimals: "0.2333", "-inf", "nan". Never "-0.00".
std::string format_fixed(double value, int decimals);
// For columns of mixed sizes: fixed where that shows at least three digits of it, else scientific: "0.2333",
// "12.5000", "3.215e-07", "0".
std::string format_value(double value, int decimals = 4);
// "1,234,567"
std::string format_count(uint64_t count);
// "512 B", "1.5 KiB", "64 MiB"
std::string format_bytes(uint64_t size_bytes);
// "850 ns", "1.25 ms", "3.2 s"
std::string format_seconds(double seconds);
// A rate or an amount with a decimal prefix: format_scaled(4.1e9, "FLOP/s") is "4.1 GFLOP/s".
std::string format_scaled(double value, std::string_view unit);

}  // namespace fovea
