# Writes a C++ file that holds other files as bytes. A script, run by fovea_embed_files at build time:
#   cmake -DOUTPUT=out.cpp -DSYMBOL=name -DFILES=a.json;b.json -P EmbedFiles.cmake
# The table is sorted by name; a name is the file's name without folder and extension.
if(CMAKE_SCRIPT_MODE_FILE)
  set(arrays "")
  set(rows "")
  set(index 0)
  foreach(file IN LISTS FILES)
    get_filename_component(name "${file}" NAME_WE)
    file(READ "${file}" bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "constexpr unsigned char kFile${index}[] = {${bytes}0};\n")
    string(APPEND rows "    {\"${name}\", kFile${index}, sizeof kFile${index} - 1},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(WRITE "${OUTPUT}" "// Written by cmake/EmbedFiles.cmake.
#include <array>

#include \"files/embedded.hpp\"

namespace fovea {
namespace {
${arrays}
constexpr std::array<EmbeddedFile, ${index}> kFiles = {{
${rows}}};
}  // namespace
std::span<const EmbeddedFile> ${SYMBOL}();  // declared where it is used, too
std::span<const EmbeddedFile> ${SYMBOL}() { return kFiles; }
}  // namespace fovea
")
  return()
endif()

# Adds to `target` a generated source that defines `std::span<const EmbeddedFile> symbol()` over the files.
function(fovea_embed_files target symbol)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cpp)
  string(REPLACE ";" "$<SEMICOLON>" files "${ARGN}")
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DSYMBOL=${symbol} "-DFILES=${files}"
      -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    COMMENT "Embedding ${symbol}" VERBATIM)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # a program may bring its own
endfunction()
