#include <rankrun/export.h>

#include "comm/core/backend_plugin.h"
#include "comm/gloo/backend.h"

// Only exported symbol of librankrun_gloo.so.
extern "C" RANKRUN_API const rankrun::comm::BackendPlugin* rankrun_backend_plugin() {
  static constexpr rankrun::comm::BackendPlugin kPlugin{
      .abi_version = rankrun::comm::kBackendAbiVersion,
      .create = &rankrun::comm::gloo::GlooBackend::Create,
      .find_devices = nullptr,
      .create_for_devices = nullptr,
      .device_memory = nullptr,
  };
  return &kPlugin;
}
