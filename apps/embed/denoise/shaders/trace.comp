// A small path tracer: a checkered floor, a wall, spheres (one of metal, one that moves), a fence of thin
// rods and a lamp that is large enough for soft shadows. Paths have up to four surfaces and sample one point
// of the lamp at each (next event estimation). Writes visible surfaces and their light, by tiles. For the
// reference it writes only the light, and adds it to the present values if from_plane is to_plane.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#define SURFACES
#define OTHERS readonly
#define PLANES
#include "denoise.glsl"

const float kFar = 1e9;
const int kBounces = 4;
const uint kRods = 9u, kSpheres = 4u;
const uint kFloor = 0u, kSphere = 1u, kRod = 5u, kLamp = 6u, kSky = 7u, kWall = 8u;  // spheres: 1 to 4
const float kWallZ = -1.9;
const vec3 kLampCentre = vec3(-1.2, 3.2, 1.0), kLampRadiance = vec3(24.0, 21.5, 18.0);
const vec2 kLampHalf = vec2(0.55, 0.55);
const float kLampArea = 4.0 * kLampHalf.x * kLampHalf.y;

uint random_state;
uint next_random() {  // PCG-RXS-M-XS (O'Neill 2014)
    random_state = random_state * 747796405u + 2891336453u;
    const uint word = ((random_state >> ((random_state >> 28) + 4u)) ^ random_state) * 277803737u;
    return (word >> 22) ^ word;
}
float random() { return float(next_random() >> 8) / 16777216.0; }

vec4 sphere(uint i) {
    if (i == 0u) return vec4(-1.05, 0.6, -0.35, 0.6);
    if (i == 1u) return vec4(0.95, 0.55, -0.55, 0.55);
    if (i == 2u) return vec4(vec3(0.0, 0.3, 0.9) + moved_by(time), 0.3);
    return vec4(0.15, 0.22, -0.05, 0.22);
}
const uint kMetalSphere = 1u, kMovingSphere = 2u;

struct Hit {
    float t;
    uint what;
    vec3 point, normal;
};

void meet_sphere(vec3 from, vec3 along, uint i, inout Hit hit) {
    const vec4 s = sphere(i);
    const vec3 d = from - s.xyz;
    const float b = dot(d, along), h = b * b - dot(d, d) + s.w * s.w;
    if (h < 0.0) return;
    const float t = -b - sqrt(h);
    if (t > 1e-3 && t < hit.t) hit = Hit(t, kSphere + i, vec3(0.0), normalize(d + t * along));
}
// Upright, of radius 0.018 and height 0.9.
void meet_rod(vec3 from, vec3 along, uint i, inout Hit hit) {
    const vec2 d = from.xz - vec2(-1.45 + 0.32 * float(i), 0.12 * sin(1.7 * float(i)) + 0.38);
    const float a = dot(along.xz, along.xz), b = dot(d, along.xz);
    const float h = b * b - a * (dot(d, d) - 0.018 * 0.018);
    if (h < 0.0 || a < 1e-9) return;
    const float t = (-b - sqrt(h)) / a, y = from.y + t * along.y;
    if (t > 1e-3 && t < hit.t && y > 0.0 && y < 0.9)
        hit = Hit(t, kRod, vec3(0.0), normalize(vec3(d.x + t * along.x, 0.0, d.y + t * along.z)));
}
Hit meet(vec3 from, vec3 along) {
    Hit hit = Hit(kFar, kSky, vec3(0.0), vec3(0.0));
    if (along.y < 0.0 && -from.y / along.y > 1e-3)
        hit = Hit(-from.y / along.y, kFloor, vec3(0.0), vec3(0.0, 1.0, 0.0));
    if (along.z < 0.0 && (kWallZ - from.z) / along.z < hit.t && from.z > kWallZ + 1e-3)
        hit = Hit((kWallZ - from.z) / along.z, kWall, vec3(0.0), vec3(0.0, 0.0, 1.0));
    for (uint i = 0u; i < kSpheres; ++i) meet_sphere(from, along, i, hit);
    for (uint i = 0u; i < kRods; ++i) meet_rod(from, along, i, hit);
    const float t = (kLampCentre.y - from.y) / along.y;
    if (t > 1e-3 && t < hit.t && all(lessThan(abs((from + t * along).xz - kLampCentre.xz), kLampHalf)))
        hit = Hit(t, kLamp, vec3(0.0), vec3(0.0, -1.0, 0.0));
    hit.point = from + hit.t * along;
    return hit;
}

vec3 sky(vec3 along) { return mix(vec3(0.05, 0.06, 0.08), vec3(0.09, 0.13, 0.21), clamp(along.y, 0.0, 1.0)); }
vec3 albedo_of(Hit hit) {
    if (hit.what == kFloor) {
        const bool dark = ((int(floor(1.6 * hit.point.x)) + int(floor(1.6 * hit.point.z))) & 1) == 0;
        return dark ? vec3(0.28, 0.30, 0.33) : vec3(0.75, 0.73, 0.69);
    }
    if (hit.what == kWall) return vec3(0.62, 0.55, 0.48);
    if (hit.what == kRod) return vec3(0.65, 0.62, 0.50);
    if (hit.what == kSphere) return vec3(0.72, 0.18, 0.14);
    if (hit.what == kSphere + kMetalSphere) return vec3(0.95, 0.78, 0.50);
    if (hit.what == kSphere + kMovingSphere) return vec3(0.20, 0.45, 0.75);
    return vec3(0.30, 0.62, 0.28);
}
bool is_metal(Hit hit) { return hit.what == kSphere + kMetalSphere; }
vec3 at_rest(Hit hit) { return hit.what == kSphere + kMovingSphere ? hit.point - moved_by(time) : hit.point; }

vec3 in_ball() {
    const float z = 2.0 * random() - 1.0, angle = 6.2831853 * random(), r = sqrt(max(0.0, 1.0 - z * z));
    return vec3(r * cos(angle), r * sin(angle), z);
}

// Light that reaches the eye along a ray whose first hit is known.
vec3 radiance_along(vec3 from, vec3 along, Hit hit) {
    vec3 sum = vec3(0.0), carried = vec3(1.0);
    bool lamp_counts = true;  // false after a diffuse surface, which has sampled the lamp already
    for (int bounce = 0; bounce < kBounces; ++bounce) {
        if (bounce > 0) hit = meet(from, along);
        if (hit.what == kSky) return sum + carried * sky(along);
        if (hit.what == kLamp) return lamp_counts ? sum + carried * kLampRadiance : sum;
        carried *= albedo_of(hit);
        if (is_metal(hit)) {
            along = normalize(reflect(along, hit.normal) + 0.06 * in_ball());
            if (dot(along, hit.normal) <= 0.0) return sum;
            from = hit.point;
            lamp_counts = true;
            continue;
        }
        const vec2 side = kLampHalf * (2.0 * vec2(random(), random()) - 1.0);
        const vec3 towards = kLampCentre + vec3(side.x, 0.0, side.y) - hit.point;
        const float squared = dot(towards, towards);
        const vec3 to_lamp = towards * inversesqrt(squared);
        const float facing = dot(to_lamp, hit.normal);
        if (facing > 0.0 && to_lamp.y > 0.0 && meet(hit.point, to_lamp).what == kLamp)
            sum += carried * kLampRadiance * facing * to_lamp.y * kLampArea / (3.14159265 * squared);
        along = normalize(hit.normal + 0.999 * in_ball());
        from = hit.point;
        lamp_counts = false;
    }
    return sum;
}

// Returns the visible surface, following mirrors as if they were smooth.
Surface surface_along(vec3 from, vec3 along, Hit hit) {
    Surface s;
    s.first = vec4(at_rest(hit), hit.what == kSky || hit.what == kLamp ? 0.0 : 1.0);
    s.normal.w = hit.what == kSphere + kMovingSphere ? 1.0 : 0.0;
    s.albedo = vec4(1.0);
    for (int i = 0; i < 2 && is_metal(hit); ++i) {
        s.albedo.rgb *= albedo_of(hit);
        along = reflect(along, hit.normal);
        hit = meet(hit.point, along);
    }
    const bool shines = hit.what == kSky || hit.what == kLamp;
    // An emitter has its light in place of an albedo, one position and no normal.
    s.albedo.rgb *= hit.what == kSky ? sky(along) : hit.what == kLamp ? kLampRadiance : albedo_of(hit);
    s.normal.xyz = shines ? vec3(0.0) : hit.normal;
    s.position = vec4(shines ? vec3(0.0, 4.0, 0.0) : clamp(at_rest(hit), vec3(-4.0), vec3(4.0)), 0.0);
    return s;
}

void main() {
    const uint index = gl_GlobalInvocationID.x;
    if (index >= pixel_count()) return;
    random_state = index * 9781u + frame * 6271u + 1u;
    next_random();
    const Camera eye = camera();
    const vec3 along = ray_through(eye, vec2(pixel_of(index)) + 0.5);
    const Hit first = meet(eye.eye, along);
    const Surface seen = surface_along(eye.eye, along, first);
    vec3 sum = vec3(0.0);
    for (uint i = 0u; i < samples; ++i) sum += radiance_along(eye.eye, along, first);
    vec4 light = vec4(sum / max(seen.albedo.rgb, vec3(0.02)), float(samples));
    if (to_plane == kNoisy)
        surfaces[index] = seen;
    else if (from_plane == to_plane)
        light += planes[to_plane * pixel_count() + index];
    planes[to_plane * pixel_count() + index] = light;
}
