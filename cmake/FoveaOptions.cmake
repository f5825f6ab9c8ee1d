# Options and the compile flags every target of this project shares.
include_guard(GLOBAL)

option(FOVEA_BUILD_TESTS "Build the tests (needs GoogleTest)" ${PROJECT_IS_TOP_LEVEL})
option(FOVEA_BUILD_APPS "Build the command line and the other programs" ${PROJECT_IS_TOP_LEVEL})
# The page's modules of Emscripten, without programs and tests.
set(FOVEA_IS_PAGE OFF)
if(EMSCRIPTEN AND NOT FOVEA_BUILD_TESTS AND NOT FOVEA_BUILD_APPS)
  set(FOVEA_IS_PAGE ON)
endif()
option(FOVEA_TEST_GPU_AV "Tests under GPU-assisted validation too (instrumented shaders: slow on software drivers)" ON)
option(FOVEA_BUILD_FUZZERS "Build the fuzzers (clang with libFuzzer; preset fuzz)" OFF)
set(_fovea_shared ${PROJECT_IS_TOP_LEVEL})
if(EMSCRIPTEN OR FOVEA_SANITIZE)
  set(_fovea_shared OFF)
endif()
option(FOVEA_BUILD_SHARED "Build libfovea as a shared library too (target fovea::fovea_shared)" ${_fovea_shared})
option(FOVEA_CORE_ONLY "Build the component core alone: libfovea, without the C++ libraries above it" OFF)
set(FOVEA_UNITY_BUILD ${PROJECT_IS_TOP_LEVEL} CACHE STRING "Compile several files of a program at a time, ALL: of the libraries, \
too, which halves a build from nothing")
option(FOVEA_INSTALL "Make the install targets" ${PROJECT_IS_TOP_LEVEL})
option(FOVEA_WARNINGS_AS_ERRORS "Treat compiler warnings as errors (on in CI)" OFF)
# Fail early: in an application's build, a Vulkan backend that is silently left out would show only as a link error.
set(_fovea_vulkan ON)
if(PROJECT_IS_TOP_LEVEL OR EMSCRIPTEN)
  set(_fovea_vulkan AUTO)
endif()
set(FOVEA_VULKAN ${_fovea_vulkan} CACHE STRING "The Vulkan backend: AUTO (where headers and glslang are found), ON or OFF")
set_property(CACHE FOVEA_VULKAN PROPERTY STRINGS AUTO ON OFF)
if(NOT FOVEA_VULKAN MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "FOVEA_VULKAN is '${FOVEA_VULKAN}'; it must be AUTO, ON or OFF")
endif()
# The fast kernels are compiled once for each instruction set of the target; they are most of the library's size.
set(FOVEA_CPU ALL CACHE STRING "CPU kernels: ALL (each instruction set, chosen at run time), BASELINE (only the compiler's own) or \
NATIVE (on Linux only that of the machine that builds and plain loops, in half the compile time)")
set_property(CACHE FOVEA_CPU PROPERTY STRINGS ALL BASELINE NATIVE)
if(NOT FOVEA_CPU MATCHES "^(ALL|BASELINE|NATIVE)$")
  message(FATAL_ERROR "FOVEA_CPU is '${FOVEA_CPU}'; it must be ALL, BASELINE or NATIVE")
endif()
# Shards over ranks (fovea::mpi, `fovea attend --shards`).
set(_fovea_mpi OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CROSSCOMPILING AND NOT FOVEA_SANITIZE)
  set(_fovea_mpi AUTO)
endif()
set(FOVEA_MPI ${_fovea_mpi} CACHE STRING "Shards of a context over MPI's ranks: AUTO (where MPI is found), ON or OFF")
set_property(CACHE FOVEA_MPI PROPERTY STRINGS AUTO ON OFF)
set(FOVEA_SANITIZE "" CACHE STRING "Sanitizers for every target, as -fsanitize takes them (address,undefined)")
set(FOVEA_TOOLS "" CACHE PATH "Prefix with newer Vulkan headers and tools than the system's")

# The four builds of the browser's engine. Flags of the whole module, libraries included.
set(FOVEA_WASM_VARIANT "simd" CACHE STRING "With Emscripten: simd, simd-threads, relaxed or relaxed-threads")
# FOVEA_KERNEL_OPTIONS are for the files that compile kernels: all others are the same in a relaxed variant, so that a compiler
# cache serves both.
set(FOVEA_KERNEL_OPTIONS "")
if(EMSCRIPTEN)
  if(FOVEA_WASM_VARIANT MATCHES "^relaxed")
    set(FOVEA_KERNEL_OPTIONS -mrelaxed-simd)
  endif()
  add_compile_options(-msimd128)
  if(FOVEA_WASM_VARIANT MATCHES "-threads$")
    add_compile_options(-pthread)
    add_link_options(-pthread)
  endif()
endif()

# The kernels are compiled with -O3 (engine/CMakeLists.txt), programs and libraries above them with -O2, tests with -O1
# (tests/CMakeLists.txt): an ordinary file gains nothing from -O3 but compile time. The preset "programs" is content with -O1.
if(PROJECT_IS_TOP_LEVEL AND NOT EMSCRIPTEN AND NOT MSVC)
  string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endif()

add_library(fovea_flags INTERFACE)
target_compile_features(fovea_flags INTERFACE cxx_std_20)
if(MSVC)
  # As below, products and sums are rounded apart; clang-cl fuses them by default.
  target_compile_options(fovea_flags INTERFACE /W4 /utf-8 /fp:precise $<$<BOOL:${FOVEA_WARNINGS_AS_ERRORS}>:/WX>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(fovea_flags INTERFACE /clang:-ffp-contract=off)
  endif()
else()
  # -ffp-contract=off: a product and a sum are rounded separately unless a kernel explicitly asks for a fused
  # multiply-add. The tutorials' digits and the equality of all CPU targets depend on it.
  target_compile_options(fovea_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
    -ffp-contract=off $<$<BOOL:${FOVEA_WARNINGS_AS_ERRORS}>:-Werror>)
  if(MINGW)
    # It measures formats by the system's printf, which its C++ library does not use. The other compilers check them.
    target_compile_options(fovea_flags INTERFACE -Wno-format)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
    # GCC 12 to 14 warn of overlapping and too long copies inside their own std::string (GCC bugs 105651 and 105329).
    target_compile_options(fovea_flags INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
  endif()
  if(FOVEA_SANITIZE)
    target_compile_options(fovea_flags INTERFACE -fsanitize=${FOVEA_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=undefined)
    target_link_options(fovea_flags INTERFACE -fsanitize=${FOVEA_SANITIZE})
  endif()
endif()

# A library that only a host may link: no exceptions, no RTTI, nothing exported by accident.
add_library(fovea_guest_flags INTERFACE)
target_link_libraries(fovea_guest_flags INTERFACE fovea_flags)
if(NOT MSVC)
  target_compile_options(fovea_guest_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti
    -fvisibility-inlines-hidden> -fvisibility=hidden)
endif()
