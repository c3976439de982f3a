# Links against an old glibc and libstdc++, for wheels that run on many Linux versions. Compiles
# nothing in another way. RANKRUN_PORTABLE: a folder that scripts/wheel.sh has filled: glibc/ and
# cxx/ (scripts/wheel/stubs.sh), libnewer_glibc.a, and deps/, static libraries of
# position-independent code (scripts/wheel/dependencies.sh).
set(stubs "-B${RANKRUN_PORTABLE}/glibc -L${RANKRUN_PORTABLE}/cxx -L${RANKRUN_PORTABLE}/glibc")
foreach(kind EXE SHARED MODULE)
  string(APPEND CMAKE_${kind}_LINKER_FLAGS " ${stubs} -Wl,--as-needed")
endforeach()
# In the old glibc, threads and the loader are libraries of their own.
set(CMAKE_CXX_STANDARD_LIBRARIES
  "${RANKRUN_PORTABLE}/libnewer_glibc.a -lpthread -ldl -lrt -lm")
set(CMAKE_C_STANDARD_LIBRARIES ${CMAKE_CXX_STANDARD_LIBRARIES})

set(deps ${RANKRUN_PORTABLE}/deps)
set(UV_STATIC_LIBRARY ${deps}/lib/libuv.a CACHE FILEPATH "")
set(UV_SHARED_LIBRARY ${deps}/lib/libuv.a CACHE FILEPATH "")
set(SODIUM_STATIC_LIBRARY ${deps}/lib/libsodium.a CACHE FILEPATH "")
set(HWLOC_LIBRARY ${deps}/lib/libhwloc.a CACHE FILEPATH "")
set(HWLOC_INCLUDE_DIR ${deps}/include CACHE PATH "")  # a part of it is written for a machine
set(DW_LIBRARY ${deps}/lib/libdw.so.1 CACHE FILEPATH "")
set(ELF_LIBRARY ${deps}/lib/libelf.so.1 CACHE FILEPATH "")
