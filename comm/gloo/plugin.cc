#include <rankrun/export.h>

#include "comm/backend.h"
#include "comm/gloo/gloo_backend.h"

// The only symbol that librankrun_gloo.so exports.
extern "C" RANKRUN_API const rankrun::comm::BackendPlugin* rankrun_backend_plugin() {
  static constexpr rankrun::comm::BackendPlugin kPlugin{
      .abi_version = rankrun::comm::kBackendAbiVersion,
      .create = &rankrun::comm::GlooBackend::Create,
  };
  return &kPlugin;
}
