# Rules of `cmake --install`: programs with their completion scripts, the
# libraries, plug-ins and headers, a CMake package, pkg-config files and man
# pages.
include(CMakePackageConfigHelpers)

if(TARGET rankrun)
  install(TARGETS rankrun rankctl RUNTIME)
  if(SKBUILD)  # it needs the library, so that a script in Python starts it (python/rankrun)
    install(TARGETS rankrun-bench RUNTIME DESTINATION rankrun/bin)
  else()
    install(TARGETS rankrun-bench RUNTIME)
  endif()
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
  if(NOT SKBUILD)
    file(CREATE_LINK rankrun ${CMAKE_BINARY_DIR}/rankrun-launch SYMBOLIC)
    install(FILES ${CMAKE_BINARY_DIR}/rankrun-launch DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  if(RANKRUN_INSTALL_TORCHRUN)
    file(CREATE_LINK rankrun ${CMAKE_BINARY_DIR}/torchrun SYMBOLIC)
    install(FILES ${CMAKE_BINARY_DIR}/torchrun DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rankrun)
if(SKBUILD)
  set(no_link NAMELINK_SKIP)
endif()
install(TARGETS rankrun_shared rankrun_rpc_shared EXPORT rankrunTargets LIBRARY ${no_link})
install(TARGETS rankrun_topology LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rankrun)
# The second folder in which the library searches, beside its own. In a wheel it is its own, from
# which the plug-in finds PyPI's NCCL.
set(plugin_dir ${CMAKE_INSTALL_LIBDIR}/rankrun)
if(SKBUILD)
  set(plugin_dir ${CMAKE_INSTALL_LIBDIR})
endif()
foreach(plugin rankrun_gloo rankrun_mpi rankrun_nccl)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION ${plugin_dir})
  endif()
endforeach()

install(DIRECTORY comm/include/rankrun DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

if(SKBUILD)  # the package itself is in the wheel already (pyproject.toml)
  install(FILES python/rankrun.pth DESTINATION .)
else()
  install(DIRECTORY python/rankrun DESTINATION ${CMAKE_INSTALL_DATADIR}/rankrun/python
    FILES_MATCHING PATTERN "*.py")
endif()

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

if(SKBUILD)
  return()  # -lrankrun would need a link
endif()
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
