// A 64 x 64 tile of a product A * B in shared memory, for devices where neighbouring threads should share
// loads. Thread t holds rows 8*(t/16) .. +7 and columns 4*(t%16) .. +3 of it in `acc`.
#ifndef FOVEA_TILE_SHARED_GLSL
#define FOVEA_TILE_SHARED_GLSL

// [depth][row or column], transposed on the way in; the extra quad keeps columns of stores on different
// banks.
shared vec4 tile_a[kSharedDepth][kSharedRows / 4 + 1];
shared vec4 tile_b[kSharedDepth][kSharedColumns / 4 + 1];

uint tile_thread_row() { return gl_LocalInvocationIndex / 16u * kSharedThreadRows; }
uint tile_thread_column() { return gl_LocalInvocationIndex % 16u * kThreadColumns; }

// Stores four depths of one row of A.
void tile_put_a(uint depth, uint row, vec4 value) {
    tile_a[depth][row >> 2][row & 3u] = value.x;
    tile_a[depth + 1u][row >> 2][row & 3u] = value.y;
    tile_a[depth + 2u][row >> 2][row & 3u] = value.z;
    tile_a[depth + 3u][row >> 2][row & 3u] = value.w;
}

// Stores four depths of one column of B.
void tile_put_b(uint depth, uint column, vec4 value) {
    tile_b[depth][column >> 2][column & 3u] = value.x;
    tile_b[depth + 1u][column >> 2][column & 3u] = value.y;
    tile_b[depth + 2u][column >> 2][column & 3u] = value.z;
    tile_b[depth + 3u][column >> 2][column & 3u] = value.w;
}

// acc += A * B over the depths in shared memory.
void tile_multiply(inout vec4 acc[kSharedThreadRows]) {
    const uint row = tile_thread_row() / 4u, column = tile_thread_column() / 4u;
    for (uint depth = 0u; depth < kSharedDepth; ++depth) {
        const vec4 b = tile_b[depth][column];
        const vec4 a0 = tile_a[depth][row], a1 = tile_a[depth][row + 1u];
        for (uint i = 0u; i < 4u; ++i) {
            acc[i] = fma(vec4(a0[i]), b, acc[i]);
            acc[i + 4u] = fma(vec4(a1[i]), b, acc[i + 4u]);
        }
    }
}

#endif
