// The shader modules of this build by number: the index of foveaShaderCode.
#pragma once

#include <fovea/fovea.h>

#include <cstddef>
#include <cstdint>

namespace fovea {

enum class Shader : uint32_t {
#define FOVEA_SHADER(name, source, defines, glslang) name,
#include "shaders/variants.def"
#undef FOVEA_SHADER
    count
};
constexpr uint32_t kShaderCount = uint32_t(Shader::count);

// SPIR-V; no words where this build has no compiler for the module.
struct ShaderWords {
    const uint32_t* words;
    size_t count;
};
extern const ShaderWords kShaderWords[kShaderCount];

// Rejects an output of fewer than 32 bits if the device cannot write it; the error names its field.
FoveaResult check_stored_type(const char* field, FoveaDtype type, const FoveaDeviceProperties& properties,
                              FoveaDiag* diag);

// FOVEA_UNSUPPORTED, naming the module, if this build has no code for it.
FoveaResult require_shader(Shader shader, FoveaDiag* diag);

}  // namespace fovea
