# Warnings are errors in our own code. Headers of dependencies are included as
# SYSTEM and exempt.
add_library(rankrun_warnings INTERFACE)
target_compile_options(rankrun_warnings INTERFACE -Wall -Wextra -Wconversion -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)  # the annotations of base/mutex.h

# Sources that share a unit (unity.cmake) may shadow a name of each other.
if(NOT RANKRUN_UNITY)
  target_compile_options(rankrun_warnings INTERFACE -Wshadow)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(rankrun_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# Adds a layer: a static library `rankrun_<folder>`, whose headers are included
# by their path from the root ("base/fd.h"). COLD: system calls
# dominate its time, so it is compiled with less optimization, which takes a
# third less time.
function(rankrun_layer folder)
  cmake_parse_arguments(LAYER "COLD" "" "SOURCES;LINK" ${ARGN})
  add_library(rankrun_${folder} STATIC ${LAYER_SOURCES})
  target_include_directories(rankrun_${folder} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(rankrun_${folder} PRIVATE rankrun_warnings PUBLIC ${LAYER_LINK})
  rankrun_precompiled(rankrun_${folder} standard)
  if(LAYER_COLD)
    # With -Og, g++ 12 raises false alarms about std::variant.
    target_compile_options(rankrun_${folder} PRIVATE
      $<$<CONFIG:RelWithDebInfo>:-Og;-Wno-maybe-uninitialized>)
  endif()
endfunction()
