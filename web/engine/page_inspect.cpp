// Colors and values as text for the page: those of the inspection library, and two maps in the page's own
// colors.
#include "web_engine.h"

#include <fovea/inspect/colormap.hpp>
#include <fovea/inspect/format.hpp>

#include <array>
#include <string>
#include <string_view>

namespace fovea::web {
namespace {

constexpr Rgb rgb(uint32_t code) {
    return {static_cast<uint8_t>(code >> 16), static_cast<uint8_t>(code >> 8 & 0xFFu),
            static_cast<uint8_t>(code & 0xFFu)};
}

// From the page's background to its accent, so that a weight of 0 does not stand out in either theme.
constexpr std::array<Rgb, 6> kInkLight = {rgb(0xf4f3ee), rgb(0xdfe3f7), rgb(0xbccaf6),
                                          rgb(0x91a6f0), rgb(0x5f7ae6), rgb(0x2447d6)};
constexpr std::array<Rgb, 6> kInkDark = {rgb(0x1f2127), rgb(0x26305a), rgb(0x33458f),
                                         rgb(0x4660cc), rgb(0x6c87f5), rgb(0xa9baff)};
// Signed values around the background.
constexpr std::array<Rgb, 7> kBalanceLight = {rgb(0x1d4f9e), rgb(0x5f8fd0), rgb(0xb5cdea), rgb(0xf4f3ee),
                                              rgb(0xf3c9a0), rgb(0xdd8a3c), rgb(0xa5500c)};
constexpr std::array<Rgb, 7> kBalanceDark = {rgb(0x9cc4ff), rgb(0x4f86cf), rgb(0x2b4770), rgb(0x1d1f25),
                                             rgb(0x6b4420), rgb(0xc67a34), rgb(0xffc48a)};

ColorTable table_of(std::string_view name, bool dark) {
    if (name == "ink") return color_table(std::span<const Rgb>(dark ? kInkDark : kInkLight));
    if (name == "balance") return color_table(std::span<const Rgb>(dark ? kBalanceDark : kBalanceLight));
    return color_table(colormap_from_name(name).value_or(Colormap::grey));
}

}  // namespace
}  // namespace fovea::web

const uint8_t* webColorTable(const char* name, int32_t dark) {
    static_assert(sizeof(fovea::Rgb) == 3);
    static fovea::ColorTable table;
    table = fovea::web::table_of(name, dark != 0);
    return &table[0].r;
}

double webColorPlace(int32_t scale, double low, double high, double value) {
    return fovea::ColorRange{low, high, static_cast<fovea::ColorScale>(scale)}.place(value);
}

const char* webNumber(int32_t is_fixed, double value, int32_t decimals) {
    static std::string text;
    text = is_fixed ? fovea::format_fixed(value, decimals) : fovea::format_value(value, decimals);
    return text.c_str();
}
