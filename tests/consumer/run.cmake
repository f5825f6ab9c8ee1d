# Configures and builds a consumer project, and runs its programs.
#   cmake -DSOURCE=folder -DBINARY=folder -DARGUMENTS="-DA=1|-DB=2" [-DTARGETS="a|b"] [-DRUN="a|b"]
#     [-DLAUNCHERS="x|y"] -P run.cmake
# LAUNCHERS: scripts, such as those of the Vulkan drivers, each of which runs every program once.
cmake_minimum_required(VERSION 3.25)
foreach(list IN ITEMS ARGUMENTS TARGETS RUN LAUNCHERS)
  string(REPLACE "|" ";" ${list} "${${list}}")
endforeach()
file(REMOVE_RECURSE "${BINARY}")

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${text}\n${code}")
  endif()
  set(text "${text}" PARENT_SCOPE)
endfunction()

step("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BINARY}" -G Ninja -DCMAKE_BUILD_TYPE=Release ${ARGUMENTS})
if(TARGETS)
  step("${CMAKE_COMMAND}" --build "${BINARY}" --parallel 2 --target ${TARGETS})
endif()
foreach(program IN LISTS RUN)
  if(NOT LAUNCHERS)
    step("${BINARY}/${program}")
    message(STATUS "${program}: ${text}")
  endif()
  foreach(launcher IN LISTS LAUNCHERS)
    step("${launcher}" "${BINARY}/${program}")
    get_filename_component(name "${launcher}" NAME)
    message(STATUS "${program} on ${name}: ${text}")
  endforeach()
endforeach()
