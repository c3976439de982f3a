# Warnings for our own code, as errors. Headers of dependencies come in as
# SYSTEM and are exempt.
add_library(rankrun_warnings INTERFACE)
target_compile_options(rankrun_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Werror)

# A layer: a static library `rankrun_<folder>` whose headers are included by
# their path from the root ("base/fd.h").
function(rankrun_layer folder)
  cmake_parse_arguments(LAYER "" "" "SOURCES;LINK" ${ARGN})
  add_library(rankrun_${folder} STATIC ${LAYER_SOURCES})
  target_include_directories(rankrun_${folder} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(rankrun_${folder} PRIVATE rankrun_warnings PUBLIC ${LAYER_LINK})
endfunction()
