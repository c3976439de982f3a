# Rules of `cmake --install`: programs with their completion scripts, the
# libraries, plug-ins and headers, a CMake package, pkg-config files and man
# pages.
include(CMakePackageConfigHelpers)

if(TARGET rankrun)
  install(TARGETS rankrun rankctl rankrun-bench RUNTIME)
  install(TARGETS rankrun-stacks RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rankrun)
  set(completions ${CMAKE_BINARY_DIR}/completions)
  install(FILES ${completions}/bash/rankrun
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completions}/zsh/_rankrun
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${completions}/fish/rankrun.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  file(CREATE_LINK rankrun ${CMAKE_BINARY_DIR}/rankrun-launch SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/rankrun-launch DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(RANKRUN_INSTALL_TORCHRUN)
    file(CREATE_LINK rankrun ${CMAKE_BINARY_DIR}/torchrun SYMBOLIC)
    install(FILES ${CMAKE_BINARY_DIR}/torchrun DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rankrun)
install(TARGETS rankrun_shared rankrun_rpc_shared EXPORT rankrunTargets LIBRARY)
# The second folder in which the library searches, beside its own.
install(TARGETS rankrun_gloo rankrun_topology LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rankrun)
foreach(plugin rankrun_mpi rankrun_nccl)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rankrun)
  endif()
endforeach()

install(DIRECTORY comm/include/rankrun DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

install(DIRECTORY python/rankrun DESTINATION ${CMAKE_INSTALL_DATADIR}/rankrun/python
  FILES_MATCHING PATTERN "*.py")

install(EXPORT rankrunTargets NAMESPACE rankrun:: DESTINATION ${package_dir})
file(WRITE ${CMAKE_BINARY_DIR}/rankrunConfig.cmake
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/rankrunTargets.cmake\")\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/rankrunConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/rankrunConfig.cmake
  ${CMAKE_BINARY_DIR}/rankrunConfigVersion.cmake
  DESTINATION ${package_dir})

# The pkg-config files. They find all paths relative to their own location, so that
# the prefix can be chosen at installation.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} OR IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
  set(pc_libdir ${CMAKE_INSTALL_FULL_LIBDIR})
  set(pc_includedir ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig
    OUTPUT_VARIABLE prefix_from_pc)
  set(pc_prefix "\${pcfiledir}/${prefix_from_pc}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
foreach(library rankrun rankrun-rpc)
  configure_file(cmake/${library}.pc.in ${CMAKE_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

file(GLOB man_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.1)
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
