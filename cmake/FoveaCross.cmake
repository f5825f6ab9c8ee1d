# Included by a folder of programs. What the tests and programs need when they are built for another target than this
# machine: GoogleTest from its sources (Debian: googletest), and for WebAssembly the flags of a program that node
# runs.
if(NOT TARGET GTest::gtest AND FOVEA_BUILD_TESTS)
  find_path(FOVEA_GOOGLETEST googletest/src/gtest-all.cc PATHS /usr/src/googletest NO_CMAKE_FIND_ROOT_PATH)
  if(NOT FOVEA_GOOGLETEST)
    message(FATAL_ERROR "GoogleTest's sources were not found (Debian: googletest); set FOVEA_GOOGLETEST to their folder")
  endif()
  set(BUILD_GMOCK OFF CACHE INTERNAL "")
  set(INSTALL_GTEST OFF CACHE INTERNAL "")
  add_subdirectory(${FOVEA_GOOGLETEST} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
endif()
find_package(Threads REQUIRED)

# Programs and tests as WebAssembly for node, with the machine's files. `main` runs in a worker where there are threads:
# node's own thread must be free to start more.
if(EMSCRIPTEN)
  add_link_options(-O3 -sENVIRONMENT=node,worker -sNODERAWFS=1 -sEXIT_RUNTIME=1 -sSTACK_SIZE=1MB -sINITIAL_MEMORY=32MB
    -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB)
  if(FOVEA_WASM_VARIANT MATCHES "-threads$")
    add_link_options(-sPROXY_TO_PTHREAD=1 -sPTHREAD_POOL_SIZE=4 -Wno-pthreads-mem-growth)
  endif()
  if(FOVEA_WASM_VARIANT MATCHES "^relaxed")
    # Node 20 needs this flag for relaxed instructions.
    list(GET CMAKE_CROSSCOMPILING_EMULATOR 0 _fovea_node)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${_fovea_node} --experimental-wasm-relaxed-simd)
  endif()
endif()
