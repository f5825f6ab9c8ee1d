// Shared by all passes of the denoiser: its buffers, its settings, the camera, and the order of pixels.
// Pixels are ordered by tiles of 8 x 8: the 64 of a tile are contiguous, tile after tile. So a tile is a page
// of keys and the queries of one batch entry, and attention reads the path tracer's output without a copy.
// The picture's sides are multiples of 8.
const uint kTile = 8u, kTilePixels = 64u;

struct Surface {   // the visible surface of a pixel; for a mirror, the surface seen in it
    vec4 normal;   // w: 1 where the thing that the ray met first is the one that moves
    vec4 position; // position of the visible surface, at rest
    vec4 first;    // position of the ray's first hit, at rest; w: 0 for the sky and the lamp
    vec4 albedo;
};
// All by tiles. Queries and keys are 16 floats each, see features.comp; of keys and values this frame's
// come first, then the last's.
layout(set = 0, binding = 0, std430) SURFACES buffer Surfaces { Surface surfaces[]; };
layout(set = 0, binding = 1, std430) OTHERS buffer Queries { vec4 queries[]; };
layout(set = 0, binding = 2, std430) OTHERS buffer Keys { vec4 keys[]; };
layout(set = 0, binding = 3, std430) OTHERS buffer Values { vec4 values[]; };
layout(set = 0, binding = 4, std430) PLANES buffer Planes { vec4 planes[]; };  // pictures, one after another

layout(push_constant) uniform Push {
    uint width, height, tiles_x, frame;  // frame: a number for each, from which its random numbers come
    float time, camera_angle;            // seconds, radians
    uint samples, from_plane, to_plane, step_width;
    float screen_sigma, normal_sigma, position_sigma, albedo_sigma;  // pixels, 1, units of the scene, 1
    float history_sigma, history_weight, firefly_limit, light_sigma; // pixels, samples, light, light
};

// Planes of light (radiance over albedo) with how many samples it is the sum of in w. As Plane in
// denoiser.hpp.
const uint kNoisy = 0u, kDenoised = 1u;

uint pixel_count() { return width * height; }
uint index_of(uvec2 pixel) {
    const uvec2 tile = pixel / kTile, within = pixel % kTile;
    return (tile.y * tiles_x + tile.x) * kTilePixels + within.y * kTile + within.x;
}
uvec2 pixel_of(uint index) {
    const uint tile = index / kTilePixels, within = index % kTilePixels;
    return uvec2(tile % tiles_x, tile / tiles_x) * kTile + uvec2(within % kTile, within / kTile);
}
vec3 light_in(uint plane, uint index) {
    const vec4 sum = planes[plane * pixel_count() + index];
    return sum.rgb / max(sum.w, 1.0);
}
float luminance(vec3 c) { return dot(c, vec3(0.2126, 0.7152, 0.0722)); }

// A pinhole that looks at the middle of the scene from a circle around it.
const vec3 kLookAt = vec3(0.0, 0.5, 0.0);
const float kZoom = 2.5;  // picture heights per unit at distance 1, twice
struct Camera {
    vec3 eye, right, up, ahead;
};
Camera camera() {
    Camera c;
    c.eye = vec3(4.0 * sin(camera_angle), 1.75, 4.0 * cos(camera_angle));
    c.ahead = normalize(kLookAt - c.eye);
    c.right = normalize(cross(c.ahead, vec3(0.0, 1.0, 0.0)));
    c.up = cross(c.right, c.ahead);
    return c;
}
vec3 ray_through(Camera c, vec2 pixel) {
    const vec2 p = (2.0 * pixel - vec2(width, height)) / float(height);
    return normalize(p.x * c.right - p.y * c.up + kZoom * c.ahead);
}
vec2 seen_at(Camera c, vec3 point) {  // in pixels
    const vec3 d = point - c.eye;
    const float z = max(dot(d, c.ahead), 1e-3);
    return 0.5 * (kZoom * vec2(dot(d, c.right), -dot(d, c.up)) / z * float(height) + vec2(width, height));
}
// Where the sphere that moves is now; all that is said "at rest" is relative to it.
vec3 moved_by(float seconds) {
    return vec3(0.9 * sin(1.3 * seconds), 0.25 * abs(sin(2.6 * seconds)), 0.35 * cos(1.3 * seconds));
}
