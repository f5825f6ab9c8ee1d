# A shared library exports only the functions of a list, so that nothing gets out by accident; tests compare it with
# the headers.
include_guard(GLOBAL)

# fovea_show_only(TARGET OUTPUT_NAME LIST...): each LIST is a file in the sources, with one function name a line.
function(fovea_show_only target output_name)
  set(exported "")
  foreach(list IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${list})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${list} names REGEX "^fovea")
    list(APPEND exported ${names})
  endforeach()
  # Before 1.0 a minor version may break the binary interface (SemVer).
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output_name} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/engine/include> $<INSTALL_INTERFACE:include>)
  target_compile_definitions(${target} INTERFACE FOVEA_SHARED)
  if(NOT TARGET fovea_vulkan_headers)
    target_compile_definitions(${target} INTERFACE FOVEA_NO_VULKAN)
  endif()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${output_name})
  if(WIN32)
    list(JOIN exported "\n" names)
    file(CONFIGURE OUTPUT ${file}.def CONTENT "EXPORTS\n${names}\n" @ONLY)
    target_sources(${target} PRIVATE ${file}.def)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  elseif(APPLE)
    list(JOIN exported "\n_" names)
    file(CONFIGURE OUTPUT ${file}.symbols CONTENT "_${names}\n" @ONLY)
    target_link_options(${target} PRIVATE -Wl,-exported_symbols_list,${file}.symbols)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  else()
    list(JOIN exported ";\n" names)
    file(CONFIGURE OUTPUT ${file}.map CONTENT
      "FOVEA_${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} {\nglobal:\n${names};\nlocal:\n*;\n};\n" @ONLY)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${file}.map)
    target_link_options(${target} PRIVATE -Wl,--version-script=${file}.map -Wl,--no-undefined)
  endif()
endfunction()
