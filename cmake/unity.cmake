# Several sources compiled as one unit: this takes a third of the time of a first build. The
# presets debug and clang compile each source alone, and so find a missing #include.
option(RANKRUN_UNITY "Compile several sources as one unit" OFF)
set(unity_most 12)  # sources of a unit: an edit compiles all of them again

# rankrun_unity(<target>): two sources whose anonymous namespaces define the same name are
# in different units. Run cmake again when an edit has made two of a unit clash.
function(rankrun_unity target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  if(NOT RANKRUN_UNITY OR NOT sources)
    return()
  endif()
  execute_process(
    COMMAND awk -v most=${unity_most} -v root=${CMAKE_SOURCE_DIR}
      -f ${CMAKE_SOURCE_DIR}/cmake/unity.awk ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([0-9]+) (.*)" _ "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
