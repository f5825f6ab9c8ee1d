# Runs a test program once on each software Vulkan driver, always under the same validation layer and settings.
#
#   fovea_add_vulkan_test(NAME TARGET [ARGS ...] [BEHIND PROGRAM ...] [DRIVERS ...] [NIGHTLY ...] [LABELS ...] [TIMEOUT SECONDS])
#       registers ctest entries NAME@DRIVER with the labels "vulkan" and "driver-DRIVER". A driver that this machine
#       lacks has its entry too: it reports as skipped, with the reason. On the drivers after NIGHTLY the entry is
#       nightly.NAME@DRIVER with the label "nightly".
#
# For each driver found, configuring writes BUILD/drivers/DRIVER, a script that runs any program on that driver alone:
#   build/default/drivers/lavapipe26 build/default/bin/fovea devices
# BUILD/drivers/all offers them all in one process.
#
#   lavapipe    Mesa of the system (Debian 12: from backports)      no cooperative matrices, subgroups of 8
#   lavapipe26  Mesa 26 in the private tools folder                 cooperative matrices
#   lavapipe26-wide  the same with subgroups of 16, for the tests that name it
#   swiftshader comes with Chromium                                 no 16-bit storage, subgroups of 4, the smallest limits
#
# BUILD/gpus/DEVICE does the same on a GPU that is not there: a hardware driver of the private tools folder, which
# compiles every pipeline to that GPU's instructions and then computes nothing. Results then contain what memory held
# before. fovea_add_gpu_test registers such a test.
#   build/default/gpus/amd-navi31 build/default/bin/fovea explain --lengths 4096 --heads 32,8 --dims 128
#
# The validation layer is the one in the private tools folder, which needs a newer C library than Debian 12 has: so
# every driver runs through its with-prefix wrapper. Without that folder: the system's loader and layer.
# More drivers, such as a GPU's: -DFOVEA_TEST_DRIVERS="name=/path/to/icd.json;..."
include_guard(GLOBAL)

set(FOVEA_TEST_DRIVERS "" CACHE STRING "More Vulkan drivers to test on, each as NAME=MANIFEST")
set(_fovea_driver_folder "${CMAKE_BINARY_DIR}/drivers")

# With a manifest that names its library without a folder, another driver's library under with-prefix would be found,
# so the copy has the whole path of the system's library. Sets OUT to the copy, or to nothing if there is no such
# library.
function(_fovea_absolute_manifest manifest name out)
  set(${out} "" PARENT_SCOPE)
  file(READ "${manifest}" text)
  string(JSON library ERROR_VARIABLE error GET "${text}" ICD library_path)
  if(error)
    return()
  endif()
  get_filename_component(folder "${manifest}" DIRECTORY)
  if(library MATCHES "/")
    get_filename_component(library "${library}" ABSOLUTE BASE_DIR "${folder}")
  else()
    find_file(found "${library}" PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib64 /usr/lib NO_DEFAULT_PATH
              NO_CACHE)
    set(library "${found}")
  endif()
  if(NOT EXISTS "${library}")
    return()
  endif()
  string(JSON text SET "${text}" ICD library_path "\"${library}\"")
  file(CONFIGURE OUTPUT "${_fovea_driver_folder}/${name}.json" CONTENT "${text}" @ONLY)
  set(${out} "${_fovea_driver_folder}/${name}.json" PARENT_SCOPE)
endfunction()

# More lines of the script follow the manifests.
function(_fovea_write_driver_script folder name manifests)
  set(wrapper "")
  list(JOIN ARGN "\n" more)
  if(more)
    string(APPEND more "\n")
  endif()
  set(layers "")
  if(FOVEA_TOOLS)
    set(wrapper "\"${FOVEA_TOOLS}/bin/with-prefix\" ")
    set(layers "export VK_LAYER_PATH=\"${FOVEA_TOOLS}/layers\"\n")
  endif()
  file(CONFIGURE OUTPUT "${folder}/${name}" @ONLY CONTENT
       "#!/bin/sh
# Written by cmake/FoveaVulkanTests.cmake. Runs PROGRAM ARGS (an executable, not a script) on one Vulkan driver.
export VK_DRIVER_FILES=\"${manifests}\"
export VK_LAYER_SETTINGS_PATH=\"${_fovea_driver_folder}/vk_layer_settings.txt\"
export FOVEA_TEST_DRIVER=${name}
export LSAN_OPTIONS=\"suppressions=${PROJECT_SOURCE_DIR}/tests/drivers/leaks.supp:print_suppressions=0\"
export TSAN_OPTIONS=\"suppressions=${PROJECT_SOURCE_DIR}/tests/drivers/races.supp:print_suppressions=0\"
${layers}${more}unset VK_ADD_DRIVER_FILES VK_ICD_FILENAMES VK_INSTANCE_LAYERS VK_LOADER_DRIVERS_DISABLE
exec ${wrapper}\"$@\"
")
  file(CHMOD "${folder}/${name}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
       GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endfunction()

# Sets FOVEA_DRIVER_NAMES, and FOVEA_DRIVER_MISSING_<name> to the reason for each that is not there.
function(_fovea_find_test_drivers)
  file(MAKE_DIRECTORY "${_fovea_driver_folder}")
  set(old_layer_setting "")
  if(NOT FOVEA_TOOLS) # the system's layer may be one of before these settings had their names
    set(old_layer_setting
        "khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n")
  endif()
  file(CONFIGURE OUTPUT "${_fovea_driver_folder}/vk_layer_settings.txt" CONTENT
       "# Synchronization validation, told to judge what shaders access: without the second, layers 1.4 overlook a
# dispatch that races with a copy.
khronos_validation.validate_sync = true
khronos_validation.syncval_shader_accesses_heuristic = true
${old_layer_setting}" @ONLY)
  set(names lavapipe lavapipe26 swiftshader)
  set(present "")
  set(all "")

  file(GLOB lavapipe_manifests /usr/share/vulkan/icd.d/lvp_icd*.json)
  list(APPEND lavapipe_manifests none)
  list(GET lavapipe_manifests 0 lavapipe_manifest)
  set(lavapipe26_manifest "${FOVEA_TOOLS}/lvp.json")
  set(swiftshader_manifest "")
  foreach(folder IN ITEMS /usr/lib/chromium /usr/lib/chromium-browser /opt/google/chrome)
    if(NOT swiftshader_manifest AND EXISTS ${folder}/vk_swiftshader_icd.json)
      set(swiftshader_manifest ${folder}/vk_swiftshader_icd.json)
    endif()
  endforeach()
  foreach(pair IN LISTS FOVEA_TEST_DRIVERS)
    if(NOT pair MATCHES "^([A-Za-z0-9_-]+)=(.+)$")
      message(FATAL_ERROR "FOVEA_TEST_DRIVERS: '${pair}' is not NAME=MANIFEST")
    endif()
    list(APPEND names "${CMAKE_MATCH_1}")
    set(${CMAKE_MATCH_1}_manifest "${CMAKE_MATCH_2}")
  endforeach()

  set(hint_lavapipe "no /usr/share/vulkan/icd.d/lvp_icd*.json (Debian: mesa-vulkan-drivers)")
  set(hint_lavapipe26 "not in the private tools folder (scripts/get-vulkan-tools.sh)")
  set(hint_swiftshader "no vk_swiftshader_icd.json (Debian: chromium-common)")
  foreach(name IN LISTS names)
    set(manifest "")
    if(EXISTS "${${name}_manifest}")
      _fovea_absolute_manifest("${${name}_manifest}" ${name} manifest)
    endif()
    file(REMOVE "${_fovea_driver_folder}/${name}")
    if(manifest)
      _fovea_write_driver_script("${_fovea_driver_folder}" ${name} "${manifest}")
      list(APPEND present ${name})
      string(APPEND all "${manifest}:")
    else()
      set(reason "${hint_${name}}")
      if(NOT reason)
        set(reason "no driver behind ${${name}_manifest}")
      endif()
      set(FOVEA_DRIVER_MISSING_${name} "${reason}" PARENT_SCOPE)
      message(STATUS "Fovea: the tests on driver ${name} are skipped: ${reason}")
    endif()
  endforeach()
  _fovea_write_driver_script("${_fovea_driver_folder}" all "${all}")
  # Run where DRIVERS names it.
  if(NOT lavapipe26 IN_LIST present)
    set(FOVEA_DRIVER_MISSING_lavapipe26-wide "${hint_lavapipe26}" PARENT_SCOPE)
  else()
    _fovea_write_driver_script("${_fovea_driver_folder}" lavapipe26-wide "${_fovea_driver_folder}/lavapipe26.json"
                               "export LP_NATIVE_VECTOR_WIDTH=512")
  endif()
  message(STATUS "Fovea: the Vulkan tests run on: ${present}")
  set(FOVEA_DRIVER_NAMES "${names}" PARENT_SCOPE)
endfunction()

_fovea_find_test_drivers()

# Each GPU that is not there: its name, Mesa's driver for it, the variable by which that driver's shim is told the
# chip, and its name for the chip. scripts/tools/get-gpus.sh builds the shims.
set(_fovea_gpus
    amd-navi31=radeon:AMDGPU_GPU_ID:navi31
    amd-gfx1150=radeon:AMDGPU_GPU_ID:gfx1150
    amd-vega10=radeon:AMDGPU_GPU_ID:vega10
    nvidia-172=nouveau:NOUVEAU_CHIPSET:172
    adreno-740=freedreno:FD_GPU_ID:740
    intel-dg2=intel:INTEL_STUB_GPU_PLATFORM:dg2
    intel-lnl=intel:INTEL_STUB_GPU_PLATFORM:lnl)
set(_fovea_gpu_folder "${CMAKE_BINARY_DIR}/gpus")

# Sets FOVEA_GPU_NAMES to those that this machine has.
function(_fovea_find_gpus)
  file(REMOVE_RECURSE "${_fovea_gpu_folder}")
  set(present "")
  foreach(gpu IN LISTS _fovea_gpus)
    string(REGEX MATCH "^([^=]+)=([^:]+):([^:]+):(.+)$" found "${gpu}")
    set(name "${CMAKE_MATCH_1}")
    set(shim "${FOVEA_TOOLS}/gpus/${CMAKE_MATCH_2}")
    if(FOVEA_TOOLS AND EXISTS "${shim}.so" AND EXISTS "${shim}.json")
      file(MAKE_DIRECTORY "${_fovea_gpu_folder}")
      _fovea_write_driver_script("${_fovea_gpu_folder}" ${name} "${shim}.json" "export ${CMAKE_MATCH_3}=${CMAKE_MATCH_4}"
                                 "export LD_PRELOAD=\"${shim}.so\"" "export MESA_SHADER_CACHE_DISABLE=1")
      list(APPEND present ${name})
    endif()
  endforeach()
  if(present)
    message(STATUS "Fovea: GPUs that are not there, in ${_fovea_gpu_folder}: ${present}")
  else()
    message(STATUS "Fovea: the tests on GPUs that are not there are skipped: scripts/get-vulkan-tools.sh --tests has not run")
  endif()
  set(FOVEA_GPU_NAMES "${present}" PARENT_SCOPE)
endfunction()

_fovea_find_gpus()

# Registers NAME@GPU: COMMAND run by the script of that GPU, with the labels "gpu" and "gpu-GPU".
function(fovea_add_gpu_test name gpu)
  set(test "${name}@${gpu}")
  if(gpu IN_LIST FOVEA_GPU_NAMES)
    add_test(NAME "${test}" COMMAND "${_fovea_gpu_folder}/${gpu}" ${ARGN})
    set_tests_properties("${test}" PROPERTIES TIMEOUT 600)
  else()
    add_test(NAME "${test}" COMMAND "${CMAKE_COMMAND}" -E echo
             "SKIPPED: ${gpu}: not in the private tools folder (scripts/get-vulkan-tools.sh --tests)")
    set_tests_properties("${test}" PROPERTIES SKIP_REGULAR_EXPRESSION "^SKIPPED: ")
  endif()
  set_tests_properties("${test}" PROPERTIES LABELS "gpu;gpu-${gpu}")
endfunction()

function(fovea_add_vulkan_test name target)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT" "ARGS;BEHIND;DRIVERS;NIGHTLY;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fovea_add_vulkan_test: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_DRIVERS)
    set(arg_DRIVERS ${FOVEA_DRIVER_NAMES})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1800) # software drivers compile for minutes where the machine is busy
  endif()
  foreach(driver IN LISTS arg_DRIVERS)
    set(test "${name}@${driver}")
    set(labels ${arg_LABELS})
    if(driver IN_LIST arg_NIGHTLY)
      set(test "nightly.${test}")
      set(labels nightly)
    endif()
    if(DEFINED FOVEA_DRIVER_MISSING_${driver})
      add_test(NAME "${test}" COMMAND "${CMAKE_COMMAND}" -E echo
               "SKIPPED: driver ${driver}: ${FOVEA_DRIVER_MISSING_${driver}}")
      set_tests_properties("${test}" PROPERTIES SKIP_REGULAR_EXPRESSION "^SKIPPED: ")
    else()
      add_test(NAME "${test}" COMMAND ${arg_BEHIND} "${_fovea_driver_folder}/${driver}" $<TARGET_FILE:${target}>
               ${arg_ARGS})
      set_tests_properties("${test}" PROPERTIES TIMEOUT ${arg_TIMEOUT})
    endif()
    set_tests_properties("${test}" PROPERTIES LABELS "vulkan;driver-${driver};${labels}")
    # Without LLVM's optimizations Mesa compiles a pipeline in a third of the time, which is most of what small calls take.
    # Pictures and measured times need them.
    if(NOT name MATCHES "visualizer|embed|bench|tune")
      set_tests_properties("${test}" PROPERTIES ENVIRONMENT GALLIVM_PERF=nopt)
    endif()
  endforeach()
endfunction()

# A sweep: NAME@DRIVER draws COUNT calls, and nightly.NAME@DRIVER (label "nightly", which ./dev test leaves out) draws WHOLE.
#   fovea_add_vulkan_sweep(NAME TARGET COUNT WHOLE ARGS ... DRIVERS ... LABELS ...)
function(fovea_add_vulkan_sweep name target count whole)
  cmake_parse_arguments(PARSE_ARGV 4 arg "" "" "ARGS;DRIVERS;LABELS")
  fovea_add_vulkan_test(${name} ${target} ARGS ${arg_ARGS} --count ${count} DRIVERS ${arg_DRIVERS} LABELS ${arg_LABELS})
  fovea_add_vulkan_test(nightly.${name} ${target} ARGS ${arg_ARGS} --count ${whole} DRIVERS ${arg_DRIVERS}
    LABELS nightly TIMEOUT 7200)
endfunction()

# The test NAME@DRIVER runs with the layer's GPU-assisted validation: instrumented shaders that judge each access.
function(fovea_instrument_shaders name driver)
  if(NOT DEFINED FOVEA_DRIVER_MISSING_${driver})
    set_property(TEST ${name}@${driver} APPEND PROPERTY ENVIRONMENT VK_KHRONOS_VALIDATION_GPUAV_ENABLE=true)
  endif()
endfunction()
