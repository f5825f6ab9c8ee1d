// A head as a small picture with its figures: what the heads panel and the grid of all layers have in common.
#pragma once

#include "panels/panels.hpp"

namespace fovea::visualizer {

inline constexpr const char* kHeadOrders[] = {"number", "entropy", "distance", "first token",
                                              "previous token"};
// The figure of an order above, from 1 on.
double head_figure(const HeadStats& stats, int order);

struct Thumbnail {
    const GpuBuffer* values;
    const GpuBuffer* hiding;  // null: masked cells are -inf in the values
    uint32_t first_element, rows, columns;
    ColourRange range;
};
void draw_thumbnail(PanelContext& ui, const Thumbnail& of, ImVec2 at, float side);
// `of_model`: a right click switches it off.
void head_tooltip(const std::string& name, const HeadStats& stats, bool of_model = false);

}  // namespace fovea::visualizer
