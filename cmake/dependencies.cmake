# Everything comes from Debian's packages; scripts/setup.sh installs them.
find_package(Threads REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
# Debian's target of headers names the shared libfmt, too.
set_property(
  TARGET spdlog::spdlog_header_only PROPERTY INTERFACE_LINK_LIBRARIES fmt::fmt-header-only
                                             Threads::Threads)
if(RANKRUN_PLUGINS)
  find_package(Gloo REQUIRED)
endif()

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

# Only the program rankrun-stacks links elfutils.
find_library(DW_LIBRARY NAMES dw REQUIRED)
find_library(ELF_LIBRARY NAMES elf REQUIRED)
find_path(DW_INCLUDE_DIR NAMES elfutils/libdwfl.h REQUIRED)

# Optional: only the plug-in librankrun_nccl.so needs these headers. PyPI's packages have them, too.
find_package(CUDAToolkit QUIET)
find_path(CUDA_INCLUDE_DIR cuda_runtime_api.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
file(GLOB nccl_of_venv ${CMAKE_SOURCE_DIR}/build/venv/lib/python3*/site-packages/nvidia/nccl)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${nccl_of_venv}/include)
set(cuda_version 0)
if(CUDA_INCLUDE_DIR)
  file(STRINGS ${CUDA_INCLUDE_DIR}/cuda.h cuda_version REGEX "^#define CUDA_VERSION ")
  string(REGEX REPLACE "[^0-9]" "" cuda_version "${cuda_version}")
endif()
if(cuda_version LESS 12050)  # cudaGetDriverEntryPointByVersion
  message(STATUS "No headers of CUDA from 12.5 on: librankrun_nccl.so is not built")
elseif(NOT NCCL_INCLUDE_DIR)
  message(STATUS "CUDA, but no header of NCCL: librankrun_nccl.so is not built")
else()
  set(RANKRUN_HAS_NCCL ON)
  math(EXPR RANKRUN_CUDA_MAJOR "${cuda_version} / 1000")
endif()

if(NOT RANKRUN_PLUGINS)
  return()
endif()

# Optional: the plug-in librankrun_mpi.so, and a benchmark.
find_package(MPI QUIET COMPONENTS C)
if(NOT MPI_C_FOUND)
  message(STATUS "No MPI: librankrun_mpi.so and allreduce_mpi are not built")
endif()
