# Configures and builds the preset "fuzz"; run from the root of the sources.
foreach(step IN ITEMS "--preset;fuzz" "--build;--preset;fuzz;--target;fovea_fuzzers;--parallel;2")
  execute_process(COMMAND ${CMAKE_COMMAND} ${step} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "cmake ${step}: ${code}")
  endif()
endforeach()
