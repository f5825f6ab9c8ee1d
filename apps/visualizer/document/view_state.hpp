// How the results are looked at. None of it changes a number.
#pragma once

#include "matrix/coloring.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fovea::visualizer {

enum class CompareHow { side, triangle, difference };

// A selection of cells for export; ends included.
struct CellRect {
    int row_begin = 0, row_last = 0, column_begin = 0, column_last = 0;
    bool within(uint64_t rows, uint64_t columns) const {
        return row_begin >= 0 && row_begin <= row_last && column_begin >= 0 && column_begin <= column_last &&
               uint64_t(row_last) < rows && uint64_t(column_last) < columns;
    }
    uint64_t rows() const { return uint64_t(row_last - row_begin + 1); }
    uint64_t columns() const { return uint64_t(column_last - column_begin + 1); }
};

struct ViewState {
    size_t stage = 0;
    std::string wanted_stage;  // shown once it is there, by its name in any case
    uint32_t head = 0;
    int picked_row = 1, picked_column = 1;
    bool pinned = false;  // hovering does not move the pick
    ColorChoice colors;
    float zoom = 0;  // pixels for a cell; 0: fit
    float pan_x = 0, pan_y = 0;
    // The first row and column in sight, fractions of a cell too, until a matrix is laid out by them.
    struct FirstCell {
        float row = 0, column = 0;
    };
    std::optional<FirstCell> first_cell;
    int compared_head = -1;  // B; -1: none
    CompareHow how = CompareHow::side;
    bool same_range = true;             // A and B side by side
    std::optional<CellRect> selection;  // dragged: what an export is cut to
    std::optional<CellRect> marked;     // cells that a walk or the arithmetic points at; exports ignore it
    // Where the reader was before each click on an input, the last at the end.
    struct Place {
        std::string stage;
        uint32_t head = 0;
        int row = 0, column = 0;
        bool pinned = false;
    };
    std::vector<Place> came_from;
    // The view goes to a pick that keys moved: none, so that it is in sight, into the middle, so near that it
    // has digits. For one frame.
    enum class Follow { none, in_sight, middle, digits } follow = Follow::none;
    bool show_other = false;  // while Shift is held: B in the place of A
};

}  // namespace fovea::visualizer
