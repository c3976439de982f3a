# What `cmake --install` puts where. Programs, the library, its plug-in, its
# headers, a CMake package and man pages; nothing else.
include(CMakePackageConfigHelpers)

if(TARGET rankrun)
  install(TARGETS rankrun rankctl RUNTIME)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rankrun)
install(TARGETS rankrun_shared EXPORT rankrunTargets LIBRARY)
# Beside the library's own name, where it looks second.
install(TARGETS rankrun_gloo LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rankrun)

get_directory_property(public_headers DIRECTORY comm DEFINITION RANKRUN_PUBLIC_HEADERS)
foreach(header IN LISTS public_headers)
  install(FILES comm/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rankrun)
endforeach()

install(EXPORT rankrunTargets NAMESPACE rankrun:: DESTINATION ${package_dir})
file(WRITE ${CMAKE_BINARY_DIR}/rankrunConfig.cmake
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/rankrunTargets.cmake\")\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/rankrunConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/rankrunConfig.cmake
  ${CMAKE_BINARY_DIR}/rankrunConfigVersion.cmake
  DESTINATION ${package_dir})

file(GLOB man_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.1)
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
