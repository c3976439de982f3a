# Everything comes from Debian's packages; scripts/setup.sh installs them.
find_package(Threads REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(Gloo REQUIRED)

# libuv is static in programs because a shared one costs the launcher 0.2 ms at
# start. It is shared in librankrun.so and in plug-ins because Debian's
# libuv_a.a is not position-independent.
find_library(UV_STATIC_LIBRARY NAMES libuv_a.a REQUIRED)
find_library(UV_SHARED_LIBRARY NAMES libuv.so REQUIRED)
find_path(UV_INCLUDE_DIR NAMES uv.h REQUIRED)
add_library(rankrun_uv INTERFACE)
target_include_directories(rankrun_uv SYSTEM INTERFACE ${UV_INCLUDE_DIR})
set(linked_into_shared $<IN_LIST:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY$<SEMICOLON>MODULE_LIBRARY>)
target_link_libraries(rankrun_uv INTERFACE
  $<IF:${linked_into_shared},${UV_SHARED_LIBRARY},${UV_STATIC_LIBRARY}>
  Threads::Threads ${CMAKE_DL_LIBS})

# libsodium is static for the same reason, and in librankrun.so because programs
# that link it then need no further library. Only agent/control and comm/tcp use
# it.
find_library(SODIUM_STATIC_LIBRARY NAMES libsodium.a REQUIRED)
find_path(SODIUM_INCLUDE_DIR NAMES sodium.h REQUIRED)
add_library(rankrun_sodium INTERFACE)
target_include_directories(rankrun_sodium SYSTEM INTERFACE ${SODIUM_INCLUDE_DIR})
target_link_libraries(rankrun_sodium INTERFACE ${SODIUM_STATIC_LIBRARY} Threads::Threads)

# Only its header: libmunge is loaded when a job needs it.
find_path(MUNGE_INCLUDE_DIR NAMES munge.h REQUIRED)

# A single header. rankrun's public headers do not need it.
find_path(DLPACK_INCLUDE_DIR NAMES dlpack/dlpack.h REQUIRED)

# Only the plug-in librankrun_topology.so links hwloc.
find_library(HWLOC_LIBRARY NAMES hwloc REQUIRED)
find_path(HWLOC_INCLUDE_DIR NAMES hwloc.h REQUIRED)

# Optional: only the GPU backend needs these.
find_package(CUDAToolkit QUIET)
find_library(NCCL_LIBRARY NAMES nccl)
if(CUDAToolkit_FOUND)
  message(STATUS "CUDA Toolkit ${CUDAToolkit_VERSION} found")
else()
  message(STATUS "CUDA Toolkit not found: CPU only")
endif()
