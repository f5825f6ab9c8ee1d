#include "picture.hpp"

#include "gpu.hpp"

#include <fovea/files.hpp>

#include <algorithm>
#include <cmath>

namespace denoise {

std::vector<float> shown(const std::vector<float>& radiance) {
    std::vector<float> out(radiance.size());
    std::transform(radiance.begin(), radiance.end(), out.begin(),
                   [](float r) { return std::pow(1 - std::exp(-r), 1 / 2.2f); });
    return out;
}

double psnr(const std::vector<float>& picture, const std::vector<float>& reference) {
    double squares = 0;
    for (size_t i = 0; i < picture.size(); ++i) squares += std::pow(double(picture[i]) - reference[i], 2);
    return -10 * std::log10(squares / double(picture.size()));
}

void save_beside_each_other(const std::string& png_file, uint32_t width, uint32_t height,
                            const std::vector<std::vector<float>>& pictures) {
    constexpr uint32_t kGap = 4;
    const uint32_t columns = uint32_t(pictures.size()) * (width + kGap) - kGap;
    std::vector<std::byte> rgb(size_t{3} * columns * height, std::byte{255});
    for (size_t p = 0; p < pictures.size(); ++p)
        for (uint32_t y = 0; y < height; ++y)
            for (uint32_t i = 0; i < 3 * width; ++i)
                rgb[3 * (size_t{y} * columns + p * (width + kGap)) + i] = std::byte(
                    std::lround(255 * std::clamp(pictures[p][size_t{3} * width * y + i], 0.0f, 1.0f)));
    const fovea::Result<fovea::Tensor> picture =
        fovea::make_tensor("picture", FOVEA_U8, {height, columns, 3}, rgb);
    embed::require(picture.has_value(), "no memory for the picture");
    const fovea::Result<uint64_t> saved = fovea::save_png(png_file, *picture);
    embed::require(saved.has_value(), saved ? "" : saved.error().text.c_str());
}

}  // namespace denoise
