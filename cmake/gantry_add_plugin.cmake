# SPDX-License-Identifier: Apache-2.0
# How a backend becomes a plugin: used by gantry's own and, installed, by those
# of others (find_package(gantry)). GANTRY_PLUGIN_SDK names the targets with the
# headers and the code of the SDK and the toolkit, GANTRY_PLUGIN_MAP the version script and
# GANTRY_PLUGIN_DIR the folder below the prefix where the engine looks.

# gantry_add_plugin(NAME SOURCES a.cc... [LINK target...]): the target gantry_NAME,
# which makes libgantry_NAME.so and installs it where the engine looks for it.
# All that it exports is its descriptor.
function(gantry_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "usage: gantry_add_plugin(NAME SOURCES a.cc... [LINK target...])")
  endif()
  set(target gantry_${name})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${GANTRY_PLUGIN_SDK} ${ARG_LINK})
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--version-script=${GANTRY_PLUGIN_MAP})
  # Under a sanitizer what the sanitizer defines is in the program.
  if(NOT GANTRY_SANITIZE AND NOT GANTRY_FUZZ)
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(
    ${target}
    PROPERTIES CXX_STANDARD 23
               CXX_STANDARD_REQUIRED ON
               CXX_EXTENSIONS OFF
               CXX_SCAN_FOR_MODULES OFF
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               POSITION_INDEPENDENT_CODE ON
               PREFIX lib
               SUFFIX .so
               LINK_DEPENDS ${GANTRY_PLUGIN_MAP})
  install(TARGETS ${target} LIBRARY DESTINATION ${GANTRY_PLUGIN_DIR})
endfunction()
