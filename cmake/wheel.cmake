# Folders of a wheel instead of those of a prefix; scikit-build-core defines SKBUILD_*. Programs and
# their files go to the Python environment, the libraries, headers and the CMake package
# into the Python package. A wheel has no links, so that a library has one name.
set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})
set(CMAKE_INSTALL_LIBEXECDIR ${SKBUILD_DATA_DIR}/libexec)
set(CMAKE_INSTALL_DATADIR ${SKBUILD_DATA_DIR}/share)
set(CMAKE_INSTALL_MANDIR ${SKBUILD_DATA_DIR}/share/man)
set(CMAKE_INSTALL_LIBDIR rankrun/lib)
set(CMAKE_INSTALL_INCLUDEDIR rankrun/include)
if(RANKRUN_PORTABLE)  # libraries that a machine may lack
  install(FILES ${DW_LIBRARY} ${ELF_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rankrun)
endif()
set(RANKRUN_LIBRARY_VERSION ${PROJECT_VERSION_MAJOR})
set(RANKRUN_LIBRARY_FROM_BENCH ../lib)
# It needs the library, so that a script in Python starts it (python/rankrun).
set(RANKRUN_INSTALL_BENCH_DIR rankrun/bin)
# From there the plug-in finds PyPI's NCCL.
set(RANKRUN_INSTALL_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR})
set(RANKRUN_INSTALL_NAMELINK NAMELINK_SKIP)
install(FILES python/rankrun.pth DESTINATION .)
