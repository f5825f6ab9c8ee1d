// From scaled scores to what masks and biases are applied to, in every attention kernel alike.
#ifndef FOVEA_LOGIT_GLSL
#define FOVEA_LOGIT_GLSL

#include "math.glsl"

// True if capped_score changes the score.
bool changes_scores(LogitView view) { return view.softcap > 0.0; }

vec4 capped_score(LogitView view, vec4 score) {
    vec4 value = score;
    if (view.softcap > 0.0) value = view.softcap * tanh_of(score / view.softcap);
    return value;
}

// The derivative of capped_score.
vec4 capped_slope(LogitView view, vec4 score) {
    if (!(view.softcap > 0.0)) return vec4(1.0);
    const vec4 share = tanh_of(score / view.softcap);
    return 1.0 - share * share;
}

#endif
