#include <chrono>
#include <functional>
#include <utility>

#include <rankrun/c/operation_hooks.h>
#include <rankrun/diagnosis/operation_hooks.h>

#include "comm/c/c_guard.h"

using rankrun::OperationInfo;

struct rankrun_operation_hooks {
  rankrun::OperationHooks hooks;
};

namespace {

int64_t Nanoseconds(OperationInfo::Time time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

std::function<void(const OperationInfo&)> InC(rankrun_operation_hook hook, void* context) {
  if (hook == nullptr) return {};
  return [=](const OperationInfo& operation) {
    const rankrun_operation_info info{
        .size = sizeof info,
        .peer = operation.peer,
        .id = operation.id,
        .name = operation.name.c_str(),
        .group = operation.group.c_str(),
        .key = operation.key.c_str(),
        .sequence = operation.sequence,
        .count = operation.count,
        .bytes = operation.bytes,
        .tag = operation.tag,
        .started_ns = Nanoseconds(operation.started),
        .ended_ns = Nanoseconds(operation.ended),
        .dtype = static_cast<uint8_t>(operation.dtype),
        .has_succeeded = static_cast<uint8_t>(operation.has_succeeded ? 1 : 0)};
    hook(context, &info);
  };
}

}  // namespace

extern "C" {

rankrun_operation_hooks* rankrun_operation_hooks_add(rankrun_operation_hook on_start,
                                                     rankrun_operation_hook on_end, void* context) {
  return rankrun::comm::GuardedOr<rankrun_operation_hooks*>(nullptr, [=] {
    return new rankrun_operation_hooks{
        .hooks = rankrun::OperationHooks({InC(on_start, context), InC(on_end, context)})};
  });
}

void rankrun_operation_hooks_release(rankrun_operation_hooks* hooks) { delete hooks; }

}  // extern "C"
