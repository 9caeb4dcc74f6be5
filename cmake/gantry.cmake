# SPDX-License-Identifier: Apache-2.0
# How every target of gantry is built, so that a folder's CMakeLists.txt only
# names its sources and what it links.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# With GANTRY_SHARED_CCACHE the compiler, and so what debuggers are told, is given paths relative to
# the build folder: one cache serves every build folder and every clone.
find_program(GANTRY_CCACHE ccache)
if(GANTRY_CCACHE AND GANTRY_SHARED_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${GANTRY_CCACHE})
elseif(GANTRY_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GANTRY_CCACHE})
endif()

find_package(Threads REQUIRED)

add_library(gantry_options INTERFACE)
target_compile_options(
  gantry_options
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${GANTRY_WERROR}>:-Werror>
            -ffunction-sections -fdata-sections)
target_link_options(gantry_options INTERFACE -Wl,--gc-sections)
target_include_directories(gantry_options INTERFACE ${CMAKE_SOURCE_DIR})
# GCC takes a source that another one includes for a header of its own.
target_compile_options(
  gantry_options INTERFACE $<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-subobject-linkage>)
if(GANTRY_SANITIZE OR GANTRY_FUZZ)
  # What the sanitizers do not see: an index within the capacity, an empty optional.
  target_compile_definitions(gantry_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(GANTRY_SANITIZE)
  target_compile_options(
    gantry_options INTERFACE -fsanitize=${GANTRY_SANITIZE} -fno-omit-frame-pointer
                             -fno-sanitize-recover=undefined)
  target_link_options(gantry_options INTERFACE -fsanitize=${GANTRY_SANITIZE})
  if(GANTRY_SANITIZE MATCHES "undefined")
    # Both add a check to every access through a pointer: twice the code and a
    # quarter of the time to compile. A null pointer ends the process under the
    # address sanitizer anyway; the fuzz preset, where bytes from elsewhere are
    # read, checks alignment.
    target_compile_options(gantry_options INTERFACE -fno-sanitize=null,alignment)
  endif()
  if(GANTRY_SANITIZE MATCHES "thread")
    # GCC says that fences are not understood; the tree uses none, libstdc++ does.
    target_compile_options(gantry_options INTERFACE -Wno-tsan)
  endif()
endif()
if(GANTRY_FUZZ)
  # Warnings are the other presets' business: this compiler has some of its own.
  target_compile_options(
    gantry_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined
                             -fno-sanitize-recover=undefined -fno-omit-frame-pointer -w)
  target_link_options(gantry_options INTERFACE -fsanitize=address,undefined)
endif()

# gantry_library(NAME SOURCES a.cc... [LINK target...])
function(gantry_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC gantry_options ${ARG_LINK})
endfunction()

# gantry_installed(TARGET...): `./run install` builds these, and what they need, alone.
function(gantry_installed)
  set_property(GLOBAL APPEND PROPERTY GANTRY_INSTALLED ${ARGN})
endfunction()

# To be called once, after all targets: the target `installed`.
function(gantry_list_installed)
  get_property(targets GLOBAL PROPERTY GANTRY_INSTALLED)
  add_custom_target(installed DEPENDS ${targets})
endfunction()

# gantry_small(OUT library...): sets OUT to the twins of these libraries: the same sources, and those
# of all that they link, compiled once more for size. Of a.cc with an a_small.cc beside it the twin has
# that one. They are compiled several at once, so that they cost little time.
function(gantry_small out)
  set(twins "")
  foreach(one IN LISTS ARGN)
    set(type "")
    if(TARGET ${one})
      get_target_property(type ${one} TYPE)
    endif()
    if(NOT type STREQUAL "STATIC_LIBRARY")
      list(APPEND twins ${one})
      continue()
    endif()
    list(APPEND twins ${one}_small)
    if(NOT TARGET ${one}_small)
      gantry_add_small(${one})
    endif()
  endforeach()
  set(${out} ${twins} PARENT_SCOPE)
endfunction()

function(gantry_add_small of)
  get_target_property(folder ${of} SOURCE_DIR)
  get_target_property(sources ${of} SOURCES)
  list(TRANSFORM sources PREPEND ${folder}/)
  foreach(source IN LISTS sources)
    string(REGEX REPLACE "\\.cc$" "_small.cc" small ${source})
    if(EXISTS ${small})
      list(TRANSFORM sources REPLACE "^${source}$" ${small})
    endif()
  endforeach()
  add_library(${of}_small STATIC ${sources})
  foreach(part IN ITEMS INCLUDE_DIRECTORIES INTERFACE_INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
    set_property(TARGET ${of}_small APPEND PROPERTY ${part} $<TARGET_PROPERTY:${of},${part}>)
  endforeach()
  get_target_property(linked ${of} LINK_LIBRARIES)
  if(linked)
    gantry_small(linked ${linked})
    target_link_libraries(${of}_small PUBLIC ${linked})
  endif()
  gantry_compile_small(${of}_small)
endfunction()

# At a fixed address, since what would have to be moved is larger.
function(gantry_compile_small target)
  target_compile_options(${target} PRIVATE -Os -fno-pie)
  set_target_properties(
    ${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16 POSITION_INDEPENDENT_CODE OFF)
endfunction()

# gantry_program(NAME [STATIC [SMALL]] [DESTINATION dir] SOURCES a.cc... [LINK target...])
# STATIC programs need nothing on the node but a kernel. Their start would go through the frames
# of all of their functions, for exceptions that may never come (__register_frame_info of GCC 13);
# they have the table instead by which a throw finds its own, as programs with libraries have it.
# SMALL ones are in the memory of each virtual machine: see gantry_small.
function(gantry_program name)
  cmake_parse_arguments(ARG "STATIC;SMALL" "DESTINATION" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(ARG_SMALL AND NOT GANTRY_SANITIZE AND NOT GANTRY_FUZZ)
    gantry_small(ARG_LINK ${ARG_LINK})
    gantry_compile_small(${name})
    target_link_options(${name} PRIVATE -no-pie)
  endif()
  target_link_libraries(${name} PRIVATE gantry_options ${ARG_LINK})
  if(ARG_STATIC AND NOT GANTRY_SANITIZE AND NOT GANTRY_FUZZ)
    target_link_options(
      ${name} PRIVATE -static -Wl,--eh-frame-hdr -Wl,--defsym,__register_frame_info=0
                      -Wl,--defsym,__deregister_frame_info=0)
  endif()
  if(ARG_DESTINATION)
    install(TARGETS ${name} RUNTIME DESTINATION ${ARG_DESTINATION})
    gantry_installed(${name})
  endif()
endfunction()

# gantry_freestanding_program(NAME SOURCES a.cc...): of some KB, without a C library, of the
# headers in gantry/toolkit/freestanding. Never built with a sanitizer, which needs one.
function(gantry_freestanding_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/core/include)
  target_compile_options(
    ${name} PRIVATE -Os -g0 -Wall -Wextra -Wpedantic -Werror -ffreestanding -fno-exceptions
                    -fno-rtti -fno-stack-protector -fno-stack-clash-protection -fcf-protection=none
                    -U_FORTIFY_SOURCE -fno-pic -fno-pie -fno-asynchronous-unwind-tables
                    -fno-sanitize=all)
  target_link_options(
    ${name} PRIVATE -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noseparate-code
                    -Wl,-z,noexecstack -s -fno-sanitize=all)
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF POSITION_INDEPENDENT_CODE OFF)
endfunction()

set(GANTRY_PLUGIN_SDK gantry_options gantry_toolkit gantry_sdk)
set(GANTRY_PLUGIN_DIR ${CMAKE_INSTALL_LIBEXECDIR}/gantry/plugins)
set(GANTRY_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/gantry_plugin.map)
include(${CMAKE_CURRENT_LIST_DIR}/gantry_add_plugin.cmake)

# gantry_plugin(NAME SOURCES a.cc... [LINK target...]): a plugin of the tree's own,
# which sees the SDK headers and nothing else of core/.
function(gantry_plugin name)
  gantry_add_plugin(${name} ${ARGN})
  gantry_installed(gantry_${name})
  set_target_properties(
    gantry_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/plugins)
endfunction()

# gantry_suite_program(TARGET NAME): the target is built with the program, and
# tests/programs of the build folder names it for those who run the suite.
function(gantry_suite_program target name)
  add_dependencies(${target} ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY GANTRY_SUITE_PROGRAMS
               "$<TARGET_FILE:${name}>\n")
endfunction()

# To be called once, after all programs.
function(gantry_list_suite_programs)
  get_property(programs GLOBAL PROPERTY GANTRY_SUITE_PROGRAMS)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/tests/programs CONTENT "${programs}")
endfunction()

# gantry_test_code(NAME): the target is compiled for being compiled fast, several
# sources at once and not optimised. Two thirds of the whole build were tests;
# so they take less than half of that.
function(gantry_test_code name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
endfunction()

# gantry_discover_tests(TARGET LABEL SECONDS [PROPERTY VALUE...]): each test of a
# GoogleTest program is one of ctest's, with the suite of ./run test as its label, a
# limit and more of ctest's properties. The program is asked for its tests when ctest is
# run, not when it is built.
function(gantry_discover_tests name label seconds)
  gtest_discover_tests(
    ${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${label} TIMEOUT ${seconds} ${ARGN})
endfunction()

# gantry_unit_test(NAME [THREADS] SOURCES a_test.cc... [LINK target...]): part of
# the target unit_tests and of ctest's label "unit". THREADS says that the code
# under test is run by more than one thread: the thread sanitizer's unit_tests
# are only these, since it finds nothing in a single thread and the rest of the
# tree would be compiled for it.
function(gantry_unit_test name)
  cmake_parse_arguments(ARG "THREADS" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE gantry_options ${ARG_LINK} GTest::gmock_main)
  gantry_test_code(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(ARG_THREADS OR NOT GANTRY_SANITIZE MATCHES "thread")
    gantry_suite_program(unit_tests ${name})
  endif()
  gantry_discover_tests(${name} unit 120)
endfunction()

# Folders that a parent names and that exist. (A folder is added by its parent
# by name; nothing is globbed.)
function(gantry_add_folders)
  foreach(folder IN LISTS ARGN)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()
