#include <rankrun/export.h>

#include "comm/core/backend_plugin.h"
#include "comm/nccl/backend.h"
#include "comm/nccl/cuda.h"
#include "comm/nccl/memory.h"

// Only exported symbol of librankrun_nccl.so.
extern "C" RANKRUN_API const rankrun::comm::BackendPlugin* rankrun_backend_plugin() {
  static constexpr rankrun::comm::BackendPlugin kPlugin{
      .abi_version = rankrun::comm::kBackendAbiVersion,
      .create = nullptr,
      .find_devices = &rankrun::comm::nccl::FindGpus,
      .create_for_devices = &rankrun::comm::nccl::NcclBackend::Create,
      .device_memory = &rankrun::comm::nccl::MemoryOfGpus,
  };
  return &kPlugin;
}
