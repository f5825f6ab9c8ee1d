// Which cells the pixels of a map tile hold, and which pixels a workgroup takes. Needs `push`.
#ifndef FOVEA_MAP_PIXELS_GLSL
#define FOVEA_MAP_PIXELS_GLSL

uint low_half(uint word) { return word & 0xffffu; }
uint high_half(uint word) { return word >> 16; }

// PixelAxis of problem/map_tile.hpp.
struct Axis {
    uint first, whole, rest, pixels;  // pixel n begins at first + n * whole + n * rest / pixels
};
Axis axis_of(uint first, uint count, uint pixels) {
    return Axis(first, count / pixels, count % pixels, pixels);
}
uint pixel_begin(Axis a, uint n) { return a.first + n * a.whole + n * a.rest / a.pixels; }
uint pixel_middle(Axis a, uint n) {
    const uint begin = pixel_begin(a, n);
    return begin + (pixel_begin(a, n + 1u) - begin) / 2u;
}
// The pixel of a cell of the axis; a guess in floats is off by one at most.
uint pixel_of(Axis a, uint cell) {
    const float cells = float(a.whole) + float(a.rest) / float(a.pixels);
    uint n = min(uint(float(cell - a.first) / cells), a.pixels - 1u);
    if (pixel_begin(a, n) > cell) --n;
    if (pixel_begin(a, n + 1u) <= cell) ++n;
    return n;
}

// The block of pixels of this workgroup, within the tile.
struct PixelBlock {
    uint x0, x1, y0, y1, columns_log2;
};
PixelBlock block_of_workgroup() {
    const uint columns_log2 = high_half(push.dims) >> 6 & 15u, rows_log2 = high_half(push.dims) >> 10 & 15u;
    const uint x0 = low_half(push.origin) + (gl_WorkGroupID.x << columns_log2);
    const uint y0 = high_half(push.origin) + (gl_WorkGroupID.y << rows_log2);
    const uint x1 = min(x0 + (1u << columns_log2), low_half(push.origin) + low_half(push.extent));
    const uint y1 = min(y0 + (1u << rows_log2), high_half(push.origin) + high_half(push.extent));
    return PixelBlock(x0, x1, y0, y1, columns_log2);
}

#endif
