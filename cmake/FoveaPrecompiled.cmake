# Precompiled headers of the standard library (and of GoogleTest), which are most of what an ordinary file takes to compile.
# One for each set of flags that a precompiled header depends on: the core library (no exceptions, no RTTI), the libraries
# above it, the programs, the tests. A source file still includes what it uses: WebAssembly, sanitizers and a host's build
# compile without them.
include_guard(GLOBAL)

set(_fovea_standard_headers
  <algorithm> <array> <atomic> <bit> <chrono> <cmath> <cstdint> <cstdio> <cstdlib> <cstring> <filesystem> <fstream>
  <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread>
  <unordered_map> <utility> <variant> <vector>)

function(_fovea_targets_below folder out)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(part IN LISTS below)
    _fovea_targets_below(${part} more)
    list(APPEND targets ${more})
  endforeach()
  set(${out} ${targets} PARENT_SCOPE)
endfunction()

# Applies to the targets that link LIBRARY, or to all. A definition that the header reads (GTEST_HAS_PTHREAD) must be
# the same.
function(_fovea_precompile_with carrier targets)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(files ${target} SOURCES)
    get_target_property(links ${target} LINK_LIBRARIES)
    if(ARGN AND NOT "${ARGN}" IN_LIST links)
      continue()
    endif()
    list(FILTER files INCLUDE REGEX "\\.cpp$")
    list(LENGTH files count)
    if(type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$" AND count GREATER 1)
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -fpch-preprocess)
      endif()
      if(type STREQUAL "EXECUTABLE")
        target_precompile_headers(${target} REUSE_FROM ${carrier}_program)
      else()
        target_precompile_headers(${target} REUSE_FROM ${carrier}_library)
      endif()
    endif()
  endforeach()
endfunction()

# Says for the compiler cache what is in TARGET's precompiled header, whose bytes are others in each build folder.
function(_fovea_sum_precompiled target)
  get_target_property(folder ${target} BINARY_DIR)
  get_target_property(headers ${target} PRECOMPILE_HEADERS)
  file(CONFIGURE OUTPUT ${folder}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum @ONLY
       CONTENT "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${GTest_VERSION} ${headers}\n")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess) # the cache's own preprocessing reads it, too
  endif()
endfunction()

function(_fovea_add_carrier name optimisation)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/empty.cpp CONTENT "int main() {}\n")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/nothing.cpp CONTENT "")
  add_executable(${name}_program EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled/empty.cpp)
  add_library(${name}_library STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled/nothing.cpp)
  foreach(kind IN ITEMS program library)
    target_link_libraries(${name}_${kind} PRIVATE fovea_flags)
    target_compile_options(${name}_${kind} PRIVATE ${optimisation})
    target_precompile_headers(${name}_${kind} PRIVATE ${_fovea_standard_headers} ${ARGN})
    _fovea_sum_precompiled(${name}_${kind})
  endforeach()
endfunction()

function(fovea_precompile_headers)
  _fovea_add_carrier(fovea_precompiled "")
  target_precompile_headers(fovea PRIVATE <algorithm> <array> <bit> <cmath> <cstdint> <cstring> <limits> <span>)
  _fovea_sum_precompiled(fovea)
  _fovea_targets_below(${PROJECT_SOURCE_DIR}/engine libraries)
  list(REMOVE_ITEM libraries fovea)
  if(NOT FOVEA_CORE_ONLY AND EXISTS ${PROJECT_SOURCE_DIR}/lens/CMakeLists.txt)
    _fovea_targets_below(${PROJECT_SOURCE_DIR}/lens lenses)
    list(APPEND libraries ${lenses})
  endif()
  if(FOVEA_BUILD_APPS)
    _fovea_targets_below(${PROJECT_SOURCE_DIR}/apps programs)
    list(APPEND libraries ${programs})
  endif()
  _fovea_precompile_with(fovea_precompiled "${libraries}")
  if(FOVEA_BUILD_TESTS)
    find_package(GTest REQUIRED) # imported per folder
    _fovea_add_carrier(fovea_precompiled_test -O1 <gtest/gtest.h>)
    target_link_libraries(fovea_precompiled_test_program PRIVATE GTest::gtest)
    target_link_libraries(fovea_precompiled_test_library PRIVATE GTest::gtest)
    _fovea_targets_below(${PROJECT_SOURCE_DIR}/tests tests)
    _fovea_precompile_with(fovea_precompiled_test "${tests}" GTest::gtest)
  endif()
endfunction()
