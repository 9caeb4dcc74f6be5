# SPDX-License-Identifier: Apache-2.0
# What authors of backends install: `cmake --install build/release --component dev`.
include(CMakePackageConfigHelpers)

set(GANTRY_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/gantry)
string(REGEX MATCH "^[0-9]+" GANTRY_COMPILER "${CMAKE_CXX_COMPILER_VERSION}")
math(EXPR GANTRY_NEXT_COMPILER "${GANTRY_COMPILER} + 1")
# The one place that says it is the header that plugins are compiled with.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS core/include/gantry/plugin.h)
file(STRINGS core/include/gantry/plugin.h line REGEX "kInterfaceVersion = [0-9]+;")
string(REGEX MATCH "kInterfaceVersion = ([0-9]+)" line "${line}")
set(GANTRY_INTERFACE_VERSION ${CMAKE_MATCH_1})
# The toolkit's archives, each before those that it needs.
get_property(GANTRY_TOOLKIT_TARGETS GLOBAL PROPERTY GANTRY_TOOLKIT)
list(REVERSE GANTRY_TOOLKIT_TARGETS)
configure_package_config_file(
  cmake/gantryConfig.cmake.in ${CMAKE_BINARY_DIR}/gantryConfig.cmake
  INSTALL_DESTINATION ${GANTRY_PACKAGE_DIR}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBEXECDIR
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/gantryConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(
  DIRECTORY core/include/gantry
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT dev
  FILES_MATCHING PATTERN "*.h")
# For plugins to carry.
install(TARGETS gantry-init RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gantry COMPONENT dev)
# gantry_os is in it for gantry_testing, and of its headers has own_processes.h alone.
set(GANTRY_ARCHIVES gantry_sdk gantry_container gantry_init_program gantry_testing gantry_os ${GANTRY_TOOLKIT_TARGETS})
install(TARGETS ${GANTRY_ARCHIVES} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
gantry_installed(${GANTRY_ARCHIVES})
install(
  FILES ${CMAKE_BINARY_DIR}/gantryConfig.cmake ${CMAKE_BINARY_DIR}/gantryConfigVersion.cmake
        cmake/gantry_add_plugin.cmake cmake/gantry_plugin.map
  DESTINATION ${GANTRY_PACKAGE_DIR}
  COMPONENT dev)
