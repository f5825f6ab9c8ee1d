// From scaled scores to what masks and biases are applied to, in every attention kernel alike.
#ifndef FOVEA_LOGIT_GLSL
#define FOVEA_LOGIT_GLSL

#include "math.glsl"

// Whether capped_score does anything.
bool changes_scores(LogitView view) { return view.softcap > 0.0; }

vec4 capped_score(LogitView view, vec4 score) {
    vec4 value = score;
    if (view.softcap > 0.0) value = view.softcap * tanh_of(score / view.softcap);
    return value;
}

#endif
