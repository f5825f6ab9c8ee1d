// Images on the host: tone curve, PSNR, three images side by side as a PNG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace denoise {

// The tone curve of shaders/show.frag, on each channel, in [0, 1].
std::vector<float> shown(const std::vector<float>& radiance);
// Peak signal-to-noise ratio in decibels, of pictures as shown.
double psnr(const std::vector<float>& picture, const std::vector<float>& reference);
void save_beside_each_other(const std::string& png_file, uint32_t width, uint32_t height,
                            const std::vector<std::vector<float>>& pictures);

}  // namespace denoise
