#include "plan/vulkan_shaders.hpp"

#include "problem/status.hpp"

namespace fovea {

FoveaResult require_shader(Shader shader, FoveaDiag* diag) {
    if (kShaderWords[uint32_t(shader)].words) return FOVEA_OK;
    return fail(diag, FOVEA_UNSUPPORTED, "kernel",
                "this build has no code for shader %s: it was made without a GLSL compiler that can build it",
                foveaShaderName(uint32_t(shader)));
}

}  // namespace fovea

using namespace fovea;

const uint32_t* foveaShaderCode(uint32_t shader, size_t* word_count) {
    const bool known = shader < kShaderCount;
    if (word_count) *word_count = known ? kShaderWords[shader].count : 0;
    return known ? kShaderWords[shader].words : nullptr;
}

const char* foveaShaderName(uint32_t shader) {
    static constexpr const char* kNames[] = {
#define FOVEA_SHADER(name, source, defines, glslang) #name,
#include "shaders/variants.def"
#undef FOVEA_SHADER
    };
    return shader < kShaderCount ? kNames[shader] : "unknown";
}
