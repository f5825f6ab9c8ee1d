#include "plan/vulkan/shaders.hpp"

#include "plan/vulkan/device_traits.hpp"
#include "problem/problem.hpp"
#include "problem/status.hpp"

namespace fovea {

FoveaResult check_stored_type(const char* field, FoveaDtype type, const FoveaDeviceProperties& properties,
                              FoveaDiag* diag) {
    if (type == FOVEA_F32) return FOVEA_OK;
    // Bytes replace a part of their word; what consists of 16 bits does too, or is stored as such.
    const bool is_byte = storage_block(type).bytes == 1;
    const uint32_t ways = FOVEA_FEATURE_DEVICE_ATOMICS | (is_byte ? 0u : uint32_t{FOVEA_FEATURE_F16_STORAGE});
    if (properties.features & ways) return FOVEA_OK;
    const char* left_off = missing_features(properties, FOVEA_FEATURE_DEVICE_ATOMICS, nullptr);
    if (!is_byte)
        if (const char* storage = missing_features(properties, FOVEA_FEATURE_F16_STORAGE, nullptr))
            left_off = storage;
    return fail(diag, FOVEA_UNSUPPORTED, field,
                "%s is %d; to write it the device needs %satomics of device scope "
                "(FOVEA_FEATURE_DEVICE_ATOMICS)%s%s",
                field, int(type), is_byte ? "" : "storageBuffer16BitAccess (FOVEA_FEATURE_F16_STORAGE) or ",
                left_off ? ": " : "", left_off ? left_off : "");
}

FoveaResult require_shader(Shader shader, FoveaDiag* diag) {
#ifdef __EMSCRIPTEN__  // pages bring WGSL of the modules that they have, and say so themselves where it is
                       // missing
    return static_cast<void>(shader), static_cast<void>(diag), FOVEA_OK;
#endif
    if (kShaderWords[uint32_t(shader)].words) return FOVEA_OK;
    return fail(
        diag, FOVEA_UNSUPPORTED, "kernel",
        "shader %s is not in this build, whose GLSL compiler could not build it; build with a newer glslang",
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
