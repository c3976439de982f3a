# Rules of `cmake --install`: programs with their completion scripts, the
# libraries, plug-ins and headers, a CMake package, pkg-config files and man
# pages.
include(CMakePackageConfigHelpers)

if(NOT SKBUILD)
  set(RANKRUN_INSTALL_BENCH_DIR ${CMAKE_INSTALL_BINDIR})
  # The second folder in which the library searches, beside its own.
  set(RANKRUN_INSTALL_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR}/rankrun)
endif()

if(TARGET rankrun)
  install(TARGETS rankrun rankctl RUNTIME)
  install(TARGETS rankrun-bench RUNTIME DESTINATION ${RANKRUN_INSTALL_BENCH_DIR})
  install(TARGETS rankrun-stacks RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rankrun)
  install(FILES agent/preload/preload.py DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rankrun)
  if(RANKRUN_PORTABLE)  # libdw lies beside it
    set_target_properties(rankrun-stacks PROPERTIES INSTALL_RPATH "$ORIGIN")
  endif()
  set(completions ${CMAKE_BINARY_DIR}/completions)
  install(FILES ${completions}/bash/rankrun
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completions}/zsh/_rankrun
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${completions}/fish/rankrun.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rankrun)
install(TARGETS rankrun_shared rankrun_rpc_shared EXPORT rankrunTargets
  LIBRARY ${RANKRUN_INSTALL_NAMELINK})
install(TARGETS rankrun_topology LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rankrun)
foreach(plugin rankrun_gloo rankrun_mpi rankrun_nccl)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION ${RANKRUN_INSTALL_PLUGIN_DIR})
  endif()
endforeach()

if(TARGET rankrun_python AND SKBUILD)
  install(TARGETS rankrun_python LIBRARY DESTINATION rankrun)
endif()

install(DIRECTORY comm/include/rankrun DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

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

if(SKBUILD)  # it has no links, and the package in Python already (pyproject.toml)
  return()
endif()

install(DIRECTORY python/rankrun DESTINATION ${CMAKE_INSTALL_DATADIR}/rankrun/python
  FILES_MATCHING PATTERN "*.py")
set(links rankrun-launch)
if(RANKRUN_INSTALL_TORCHRUN)
  list(APPEND links torchrun)
endif()
foreach(link IN LISTS links)
  if(TARGET rankrun)
    file(CREATE_LINK rankrun ${CMAKE_BINARY_DIR}/${link} SYMBOLIC)
    install(FILES ${CMAKE_BINARY_DIR}/${link} DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

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
