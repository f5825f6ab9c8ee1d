# Compiles the modules of shaders/variants.def and writes the source file that embeds them.
#
#   fovea_embed_shaders(TARGET)   adds that file to TARGET
#
# Without glslang, and with one that is too old for a module, the SPIR-V of a release's source archive is taken (shaders/spirv). Where
# that is missing too, with FOVEA_VULKAN=OFF and in WebAssembly, the module has no code (foveaShaderCode gives null) and plans
# that need it are refused. spirv-opt and spirv-val are used if they are in the compiler's folder.
include_guard(GLOBAL)
include(FoveaTools)

set(_fovea_embed_script ${CMAKE_CURRENT_LIST_DIR}/EmbedWords.cmake)
set(_fovea_shader_folder ${PROJECT_SOURCE_DIR}/shaders)

# spirv-opt's -O without loop-unroll: drivers unroll the loops that ask for it, and know the constants that say how far. Here only
# loops of a few literal turns would be, and those of the matrix kernels made their modules twice as large. Small ids compress better.
set(_fovea_passes
    wrap-opkill eliminate-dead-branches merge-return inline-entry-points-exhaustive eliminate-dead-functions
    eliminate-dead-code-aggressive private-to-local eliminate-local-single-block eliminate-local-single-store
    eliminate-dead-code-aggressive scalar-replacement=100 convert-local-access-chains eliminate-local-single-block
    eliminate-local-single-store eliminate-dead-code-aggressive ssa-rewrite eliminate-dead-code-aggressive ccp
    eliminate-dead-code-aggressive eliminate-dead-branches redundancy-elimination combine-access-chains simplify-instructions
    scalar-replacement=100 convert-local-access-chains eliminate-local-single-block eliminate-local-single-store
    eliminate-dead-code-aggressive ssa-rewrite eliminate-dead-code-aggressive vector-dce eliminate-dead-inserts
    eliminate-dead-branches simplify-instructions if-conversion copy-propagate-arrays reduce-load-size
    eliminate-dead-code-aggressive merge-blocks redundancy-elimination eliminate-dead-branches merge-blocks
    simplify-instructions compact-ids)
list(TRANSFORM _fovea_passes PREPEND "--")

# Adds the rules that turn one module into NAME.inc, its words as C++ text.
function(_fovea_compile_shader name source defines out)
  set(stem ${CMAKE_CURRENT_BINARY_DIR}/shaders/${name})
  set(environment vulkan1.1)
  if("FOVEA_VULKAN_1_3" IN_LIST defines)
    set(environment vulkan1.3)
  endif()
  set(macros "")
  foreach(define IN LISTS defines)
    list(APPEND macros -D${define})
  endforeach()
  add_custom_command(
    OUTPUT ${stem}.raw.spv
    COMMAND ${FOVEA_GLSLANG} -V --quiet -g0 --target-env ${environment} ${macros} --depfile ${stem}.d -o ${stem}.raw.spv
            ${_fovea_shader_folder}/${source}
    DEPENDS ${_fovea_shader_folder}/${source} ${FOVEA_GLSLANG}
    DEPFILE ${stem}.d
    COMMENT "GLSL ${name}"
    VERBATIM)
  set(optimize ${CMAKE_COMMAND} -E copy ${stem}.raw.spv ${stem}.spv)
  if(FOVEA_SPIRV_OPT)
    set(optimize ${FOVEA_SPIRV_OPT} --target-env=${environment} ${_fovea_passes} ${stem}.raw.spv -o ${stem}.spv)
  endif()
  set(validate "")
  if(FOVEA_SPIRV_VAL)
    set(validate COMMAND ${FOVEA_SPIRV_VAL} --target-env ${environment} ${stem}.spv)
  endif()
  add_custom_command(
    OUTPUT ${stem}.inc
    COMMAND ${optimize}
    ${validate}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${stem}.spv -DOUTPUT=${stem}.inc -P ${_fovea_embed_script}
    DEPENDS ${stem}.raw.spv ${_fovea_embed_script}
    COMMENT "SPIR-V ${name}"
    VERBATIM)
  set(${out} ${stem}.inc PARENT_SCOPE)
endfunction()

# The same for a module that a release brings along as SPIR-V.
function(_fovea_take_shader name out)
  set(stem ${CMAKE_CURRENT_BINARY_DIR}/shaders/${name})
  set(code ${_fovea_shader_folder}/spirv/${name}.spv)
  add_custom_command(
    OUTPUT ${stem}.inc
    COMMAND ${CMAKE_COMMAND} -DINPUT=${code} -DOUTPUT=${stem}.inc -P ${_fovea_embed_script}
    DEPENDS ${code} ${_fovea_embed_script}
    COMMENT "SPIR-V ${name}, as released"
    VERBATIM)
  set(${out} ${stem}.inc PARENT_SCOPE)
endfunction()

function(fovea_embed_shaders target)
  get_filename_component(beside "${FOVEA_GLSLANG}" DIRECTORY)
  find_program(FOVEA_SPIRV_OPT spirv-opt HINTS "${beside}" NO_CACHE)
  if(NOT FOVEA_SPIRV_OPT)
    set(FOVEA_SPIRV_OPT "")
  endif()
  set(table ${_fovea_shader_folder}/variants.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/shaders)
  file(STRINGS ${table} lines REGEX "^FOVEA_SHADER\\(")
  set(arrays "")
  set(entries "")
  set(includes "")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^FOVEA_SHADER\\(([a-z0-9_]+), \"([a-z0-9_.]+)\", \"([A-Z0-9_= ]*)\", ([0-9]+)\\)$")
      message(FATAL_ERROR "shaders/variants.def: cannot read: ${line}")
    endif()
    set(name ${CMAKE_MATCH_1})
    set(source ${CMAKE_MATCH_2})
    set(least ${CMAKE_MATCH_4})
    separate_arguments(defines UNIX_COMMAND "${CMAKE_MATCH_3}")
    set(include "")
    if(EMSCRIPTEN OR FOVEA_VULKAN STREQUAL "OFF")
      # The page has WGSL instead, and who wants no Vulkan shall not carry its shaders.
    elseif(FOVEA_GLSLANG AND FOVEA_GLSLANG_VERSION GREATER_EQUAL least)
      _fovea_compile_shader(${name} ${source} "${defines}" include)
    elseif(EXISTS ${_fovea_shader_folder}/spirv/${name}.spv)
      _fovea_take_shader(${name} include)
    endif()
    if(include)
      list(APPEND includes ${include})
      string(APPEND arrays "const uint32_t ${name}[] = {\n#include \"shaders/${name}.inc\"\n};\n")
      string(APPEND entries "    {${name}, sizeof ${name} / 4},\n")
    else()
      string(APPEND entries "    {nullptr, 0},\n")
    endif()
  endforeach()
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/embedded_shaders.cpp)
  file(CONFIGURE OUTPUT ${embedded} @ONLY CONTENT
       "// Written by cmake/FoveaShaders.cmake.
#include \"plan/vulkan/shaders.hpp\"

namespace fovea {
namespace {
${arrays}}  // namespace

const ShaderWords kShaderWords[kShaderCount] = {
${entries}};
}  // namespace fovea
")
  target_sources(${target} PRIVATE ${embedded})
  add_custom_target(${target}_shaders DEPENDS ${includes})
  add_dependencies(${target} ${target}_shaders)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
endfunction()
