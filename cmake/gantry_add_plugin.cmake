# SPDX-License-Identifier: Apache-2.0
# How a backend becomes a plugin: used by gantry's own and, installed, by those
# of others (find_package(gantry)). GANTRY_PLUGIN_SDK names the targets with the
# headers and the code of the SDK and the toolkit, GANTRY_PLUGIN_MAP the version script and
# GANTRY_PLUGIN_DIR the folder below the prefix where the engine looks.

# gantry_embed_helpers(TARGET program...): the programs, targets of this project, are in TARGET,
# where OpenHelper (gantry/toolkit/descriptors/helper.h) finds them by their names. They are
# carried without what only a debugger reads: opened, they lie in memory as they are carried.
function(gantry_embed_helpers target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_helpers.cc)
  set(data "")
  set(table "")
  set(carried "")
  foreach(program IN LISTS ARGN)
    if(NOT TARGET ${program})
      message(FATAL_ERROR "HELPERS of ${target}: '${program}' is no target: it needs an add_executable before")
    endif()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_helpers/${program})
    add_custom_command(
      OUTPUT ${file}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/${target}_helpers
      COMMAND ${CMAKE_STRIP} -o ${file} $<TARGET_FILE:${program}>
      DEPENDS ${program}
      VERBATIM)
    list(APPEND carried ${file})
    string(MAKE_C_IDENTIFIER "gantry_helper_${program}" symbol)
    string(
      APPEND
      data
      "asm(R\"(.pushsection .rodata\n.balign 64\n${symbol}:\n.incbin \"${file}\"\n"
      "${symbol}_end:\n.byte 0\n.popsection)\");\n"
      "extern \"C\" __attribute__((visibility(\"hidden\"))) const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND table "    {\"${program}\", ${symbol}, ${symbol}_end},\n")
  endforeach()
  file(
    GENERATE
    OUTPUT ${source}.in
    CONTENT
      "#include <gantry/toolkit/descriptors/helper.h>\n${data}
gantry::Result<gantry::UniqueFd> gantry::OpenHelper(std::string_view name) {
  static constexpr CarriedProgram kAll[] = {\n${table}  };
  return OpenCarried(kAll, name);
}\n")
  # Newer than the programs, so that it is compiled again where one of them is.
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -E copy ${source}.in ${source}
    DEPENDS ${source}.in ${carried}
    VERBATIM)
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
endfunction()

# gantry_add_plugin(NAME SOURCES a.cc... [LINK target...] [HELPERS program...]): the target
# gantry_NAME, which makes libgantry_NAME.so and installs it where the engine looks for it.
# All that it exports is its descriptor. HELPERS are programs, targets, that it carries in itself.
function(gantry_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;HELPERS" ${ARGN})
  if(NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(
      FATAL_ERROR
        "usage: gantry_add_plugin(NAME SOURCES a.cc... [LINK target...] [HELPERS program...])")
  endif()
  set(target gantry_${name})
  add_library(${target} MODULE ${ARG_SOURCES})
  if(ARG_HELPERS)
    gantry_embed_helpers(${target} ${ARG_HELPERS})
  endif()
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
