# Installing and packaging.
#
#   cmake --install BUILD --prefix P                      everything
#   cmake --install BUILD --prefix P --component core     one part: core, files, runtime, model, train, inspect, apps
#   cpack --config BUILD/CPackConfig.cmake -G TGZ         an archive; -G DEB Debian packages: libraries, programs
#
# The parts are the components of find_package(fovea COMPONENTS ...), see packaging/cmake/fovea-config.cmake.in.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_fovea_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/fovea)
set(_fovea_headers ${PROJECT_SOURCE_DIR}/engine/include/fovea)
set(_fovea_lens_headers ${PROJECT_SOURCE_DIR}/lens/include/fovea)
set(_fovea_components "")

# Installs the targets of one component that this build has, and the file that imports them.
function(_fovea_install_component name)
  set(targets "")
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      list(APPEND targets ${target})
      string(REGEX REPLACE "^fovea_(runtime|model|train|files|inspect|mpi)$" "\\1" exported ${target})
      set_target_properties(${target} PROPERTIES EXPORT_NAME ${exported})
    endif()
  endforeach()
  if(NOT targets)
    return()
  endif()
  install(TARGETS ${targets} EXPORT fovea-${name}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${name})
  install(EXPORT fovea-${name} NAMESPACE fovea:: FILE fovea-${name}.cmake DESTINATION ${_fovea_cmake_folder}
    COMPONENT ${name})
  set(_fovea_components ${_fovea_components} ${name} PARENT_SCOPE)
endfunction()

_fovea_install_component(core fovea fovea_shared)
_fovea_install_component(files fovea_files)
_fovea_install_component(runtime fovea_runtime fovea_runtime_shared fovea_vma_code fovea_volk)
_fovea_install_component(model fovea_model)
_fovea_install_component(train fovea_train)
_fovea_install_component(inspect fovea_inspect)
_fovea_install_component(mpi fovea_mpi)

# Public headers only, each with the library that defines what it declares.
set(_fovea_core_headers fovea.h fovea.hpp dtype.hpp half.hpp philox.hpp thread_pool.hpp)
list(TRANSFORM _fovea_core_headers PREPEND ${_fovea_headers}/)
if(TARGET fovea_vulkan_headers)
  list(APPEND _fovea_core_headers ${_fovea_headers}/fovea_vulkan.h ${_fovea_headers}/fovea_vulkan.hpp)
endif()
install(FILES ${_fovea_core_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fovea COMPONENT core)
foreach(component IN LISTS _fovea_components)
  foreach(folder IN LISTS _fovea_headers _fovea_lens_headers)
    foreach(header IN ITEMS ${component}.hpp fovea_${component}.h)
      if(EXISTS ${folder}/${header})
        install(FILES ${folder}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fovea COMPONENT ${component})
      endif()
    endforeach()
    if(IS_DIRECTORY ${folder}/${component})
      install(DIRECTORY ${folder}/${component} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fovea
        COMPONENT ${component} FILES_MATCHING PATTERN "*.hpp")
    endif()
  endforeach()
endforeach()

# External targets that an imported target needs.
set(FOVEA_NEEDS_VOLK OFF)
if(TARGET volk::volk)
  set(FOVEA_NEEDS_VOLK ON)
endif()
set(FOVEA_NEEDS_ZLIB OFF)
set(FOVEA_NEEDS_PNG OFF)
if(TARGET fovea_files)
  get_target_property(_fovea_files_links fovea_files LINK_LIBRARIES)
  if("ZLIB::ZLIB" IN_LIST _fovea_files_links)
    set(FOVEA_NEEDS_ZLIB ON)
  endif()
  if("PNG::PNG" IN_LIST _fovea_files_links)
    set(FOVEA_NEEDS_PNG ON)
  endif()
endif()
set(FOVEA_COMPONENTS ${_fovea_components})
configure_package_config_file(${PROJECT_SOURCE_DIR}/packaging/cmake/fovea-config.cmake.in
  ${PROJECT_BINARY_DIR}/fovea-config.cmake INSTALL_DESTINATION ${_fovea_cmake_folder})
# Before 1.0 a minor version may break what programs are written against (SemVer).
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fovea-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fovea-config.cmake ${PROJECT_BINARY_DIR}/fovea-config-version.cmake
  DESTINATION ${_fovea_cmake_folder} COMPONENT core)

# pkg-config: the prefix is found from the file's own place, so that a tree can be moved.
file(RELATIVE_PATH FOVEA_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" FOVEA_PREFIX_FROM_PC "${FOVEA_PREFIX_FROM_PC}")
set(FOVEA_RUNTIME_LIBS "")
foreach(library IN ITEMS fovea_vma_code fovea_volk)
  if(TARGET ${library})
    get_target_property(_fovea_library_type ${library} TYPE)
    if(_fovea_library_type STREQUAL "STATIC_LIBRARY")
      string(APPEND FOVEA_RUNTIME_LIBS "-l${library} ")
    endif()
  endif()
endforeach()
foreach(package IN ITEMS core:fovea runtime:fovea-runtime)
  string(REPLACE ":" ";" package ${package})
  list(GET package 0 component)
  list(GET package 1 file)
  if(component IN_LIST _fovea_components)
    configure_file(${PROJECT_SOURCE_DIR}/packaging/${file}.pc.in ${PROJECT_BINARY_DIR}/${file}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${file}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
      COMPONENT ${component})
  endif()
endforeach()

foreach(program IN ITEMS fovea_cli fovea_visualizer)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT apps)
  endif()
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)
# A separate project: users copy it from there and build it against the installed library.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/samples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_PACKAGE_NAME fovea)
  set(CPACK_PACKAGE_VENDOR "The Fovea authors")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_VERBATIM_VARIABLES ON)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The Fovea authors <fovea@localhost>")
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # asks dpkg-shlibdeps for what the programs need
  # Two packages, so that who links the library gets no window system with it.
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_LIBRARIES_PACKAGE_NAME libfovea-dev)
  set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SUGGESTS libvulkan-dev)
  set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME fovea-tools)
  set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS mesa-vulkan-drivers)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_SOURCE_GENERATOR "")
  include(CPack)
  cpack_add_component_group(libraries DESCRIPTION "Libraries, headers and samples of Fovea, an attention engine")
  cpack_add_component_group(programs DESCRIPTION "The command line and the visualizer of Fovea, an attention engine")
  foreach(component IN LISTS _fovea_components)
    cpack_add_component(${component} GROUP libraries)
  endforeach()
  cpack_add_component(apps GROUP programs)
endif()
