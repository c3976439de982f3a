# Precompiled headers: parsing them was half of the time of a build. Each set is
# compiled once and shared by all targets that name it. The preset `clang` compiles
# without them, and so finds a missing #include.
option(RANKRUN_PRECOMPILED_HEADERS "Precompile the headers of libraries" ON)

# The targets share a precompiled header only if all are compiled with the same
# options: -fPIC everywhere, not -fPIE in programs.
add_compile_options(-fPIC)
if(RANKRUN_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # for ccache
  # Collecting garbage takes a tenth of the time; few units need this much memory.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=500000>)  # KiB
  # False alarms of g++ 12 inside std::string, which it hides in headers that are
  # not precompiled (GCC bugs 105329 and 105651).
  target_compile_options(rankrun_warnings INTERFACE
    -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()

if(RANKRUN_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # for ccache
endif()

# With <complex>, <filesystem> and <sstream>, which few sources of libraries include,
# g++ would take a tenth longer for each unit.
set(standard_headers
  <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstdint>
  <cstdio> <cstdlib> <cstring> <deque> <exception> <functional> <limits> <list> <map>
  <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <tuple>
  <unordered_map> <utility> <variant> <vector>
  <fcntl.h> <poll.h> <signal.h> <sys/resource.h> <sys/socket.h> <sys/stat.h> <sys/types.h>
  <sys/wait.h> <unistd.h>)

# rankrun_header_set(<name> [LINK <libraries>] HEADERS <headers>...)
function(rankrun_header_set name)
  cmake_parse_arguments(SET "" "" "LINK;HEADERS" ${ARGN})
  add_library(rankrun_headers_${name} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
  target_link_libraries(rankrun_headers_${name} PRIVATE rankrun_warnings ${SET_LINK})
  target_precompile_headers(rankrun_headers_${name} PRIVATE ${standard_headers} ${SET_HEADERS})
  set_target_properties(rankrun_headers_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
endfunction()
if(RANKRUN_PRECOMPILED_HEADERS)
  rankrun_header_set(standard)
  rankrun_header_set(standard_json LINK nlohmann_json::nlohmann_json HEADERS <nlohmann/json.hpp>)
  if(RANKRUN_TESTS)
    find_package(GTest REQUIRED)
    set(test_headers <complex> <filesystem> <sstream> <gmock/gmock.h> <gtest/gtest.h>)
    rankrun_header_set(tests LINK GTest::gmock HEADERS ${test_headers})
    rankrun_header_set(tests_json LINK nlohmann_json::nlohmann_json GTest::gmock
      HEADERS ${test_headers} <nlohmann/json.hpp>)
    # Tests are not optimized in builds with a sanitizer.
    target_compile_options(rankrun_headers_tests PRIVATE $<$<CONFIG:Debug>:-O0>)
    target_compile_options(rankrun_headers_tests_json PRIVATE $<$<CONFIG:Debug>:-O0>)
  endif()
endif()

# rankrun_precompiled(<target> <set>): compiles a target with a set of headers, and
# its sources that include <nlohmann/json.hpp> with <set>_json. With g++, a unit whose
# set has this header instantiates json's parser, used or not, which takes 0.4 s.
# Groups the sources into units (unity.cmake).
function(rankrun_precompiled target set)
  if(NOT RANKRUN_PRECOMPILED_HEADERS)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(json_sources)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    if(EXISTS ${path})
      file(STRINGS ${path} includes REGEX "^#include <nlohmann/json.hpp>")
      if(includes)
        list(APPEND json_sources ${source})
      endif()
    endif()
  endforeach()
  if(json_sources)
    list(REMOVE_ITEM sources ${json_sources})
    add_library(${target}_json OBJECT ${json_sources})
    foreach(property INCLUDE_DIRECTORIES COMPILE_OPTIONS COMPILE_DEFINITIONS)
      set_property(TARGET ${target}_json PROPERTY
        ${property} $<TARGET_PROPERTY:${target},${property}>)
    endforeach()
    target_precompile_headers(${target}_json REUSE_FROM rankrun_headers_${set}_json)
    rankrun_unity(${target}_json)
    set_property(TARGET ${target} PROPERTY SOURCES ${sources} $<TARGET_OBJECTS:${target}_json>)
  endif()
  target_precompile_headers(${target} REUSE_FROM rankrun_headers_${set})
  rankrun_unity(${target})
endfunction()
