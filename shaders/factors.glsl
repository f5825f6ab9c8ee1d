// Factors of products in float16.
#ifndef FOVEA_FACTORS_GLSL
#define FOVEA_FACTORS_GLSL

// Finite numbers beyond float16's range become its largest ones.
f16vec4 factors_of(vec4 x) {
    const bvec4 beyond = greaterThan(abs(x), vec4(65504.0));
    return f16vec4(mix(x, mix(sign(x) * 65504.0, x, isinf(x)), beyond));
}

#endif
