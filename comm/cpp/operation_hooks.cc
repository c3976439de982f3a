#include <utility>

#include <rankrun/diagnosis/operation_hooks.h>

#include "comm/core/hook_table.h"

namespace rankrun {

OperationHooks::OperationHooks(OperationCallbacks callbacks)
    : entry_(std::make_shared<comm::HookEntry>(std::move(callbacks))) {
  comm::AddHooks(entry_);
}

OperationHooks::~OperationHooks() { comm::RemoveHooks(entry_); }

}  // namespace rankrun
