// Features of a pixel as queries and keys, see features.comp.
const float kScreenPeriod = 48.0;  // pixels

float screen_concentration(float sigma) {
    const float a = kScreenPeriod / (6.2831853 * sigma);
    return a * a;
}

// Fireflies: a value beyond the limit weighs so little less that it brings the limit's light.
float own_weight(vec3 light) { return -log(max(1.0, luminance(light) / firefly_limit)); }

// Row `row` of the keys; of the queries too if it is one of this frame.
void write_features(uint row, Surface s, vec2 pixel, float sigma, float logarithm_of_weight) {
    const vec3 normal = s.normal.xyz / normal_sigma, place = (s.position.xyz - kLookAt) / position_sigma;
    const vec3 albedo = (s.albedo.rgb - 0.5) / albedo_sigma;
    const vec2 angle = pixel * (6.2831853 / kScreenPeriod);
    const vec4 screen = vec4(cos(angle), sin(angle));
    // Queries hold the screen at sqrt(a) of this frame's sigma; keys what makes the product their own a.
    const float root = sqrt(screen_concentration(screen_sigma)), a = screen_concentration(sigma);
    const float squares = dot(normal, normal) + dot(place, place) + dot(albedo, albedo);
    const float last = -0.5 * squares - 2.0 * a + logarithm_of_weight;
    keys[4u * row] = screen * (a / root);
    keys[4u * row + 1u] = vec4(normal, place.x);
    keys[4u * row + 2u] = vec4(place.yz, albedo.rg);
    keys[4u * row + 3u] = vec4(albedo.b, last, 0.0, 0.0);
    if (row >= pixel_count()) return;
    queries[4u * row] = screen * root;
    queries[4u * row + 1u] = vec4(normal, place.x);
    queries[4u * row + 2u] = vec4(place.yz, albedo.rg);
    queries[4u * row + 3u] = vec4(albedo.b, 1.0, 0.0, 0.0);
}
