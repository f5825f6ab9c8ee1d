#version 450
// One rectangle of the framebuffer, two triangles, no vertex buffer.
#extension GL_GOOGLE_include_directive : require
#include "matrix_view.h"

layout(push_constant) uniform Push { MatrixView view; };
layout(location = 0) out vec2 pixel;

void main() {
    vec2 corner = vec2((gl_VertexIndex & 1), (gl_VertexIndex >> 1));
    pixel = vec2(view.left, view.top) + corner * vec2(view.width, view.height);
    gl_Position = vec4(pixel / vec2(view.target_width, view.target_height) * 2.0 - 1.0, 0.0, 1.0);
}
