#include "tests/nccl/outside_nccl.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include <rankrun/device_backend.h>

#include "comm/core/device_backend.h"
#include "comm/stores/store_handle.h"
#include "comm/stores/store_state.h"
#include "comm/world/plugin.h"

namespace rankrun::comm {
namespace {

using Backend = std::unique_ptr<DeviceBackend>;
using Message = std::shared_ptr<DeviceMessage>;
using AnyWork = std::shared_ptr<DeviceWork>;

// Handle of a work; messages have both.
struct Handle {
  AnyWork work;
  Message message = {};
};

rankrun_status StatusOf(const Error& error, char* reason, size_t reason_size) {
  snprintf(reason, reason_size, "%s", error.message.c_str());
  switch (error.code) {
    case ErrorCode::kInvalid:
      return RANKRUN_INVALID;
    case ErrorCode::kTimeout:
      return RANKRUN_TIMEOUT;
    case ErrorCode::kPeerLost:
      return RANKRUN_NETWORK;
    default:
      return RANKRUN_BACKEND;
  }
}

rankrun_status StatusOf(const Result<void>& result, char* reason, size_t reason_size) {
  return result ? RANKRUN_OK : StatusOf(result.error(), reason, reason_size);
}

rankrun_status Flag(const Result<bool>& result, int* flag, char* reason, size_t reason_size) {
  if (!result) return StatusOf(result.error(), reason, reason_size);
  *flag = *result ? 1 : 0;
  return RANKRUN_OK;
}

DeviceCall CallOf(const rankrun_device_call& call) {
  EXPECT_EQ(call.size, sizeof call);
  DeviceCall result{.operation = {.kind = static_cast<Operation::Kind>(call.kind),
                                  .dtype = static_cast<DType>(call.dtype),
                                  .op = static_cast<ReduceOp::Kind>(call.op),
                                  .device = DeviceType::kCuda,
                                  .root = call.root},
                    .factor = call.factor,
                    .device = call.device,
                    .stream = call.stream,
                    .timeout = std::chrono::milliseconds(call.timeout_ms)};
  for (size_t i = 0; i < call.output_count; ++i) {
    result.outputs.push_back({static_cast<std::byte*>(call.outputs[i].data), call.outputs[i].size});
  }
  for (size_t i = 0; i < call.input_count; ++i) {
    result.inputs.push_back({static_cast<std::byte*>(call.inputs[i].data), call.inputs[i].size});
  }
  return result;
}

rankrun_status Create(void* context, const rankrun_device_group* group, void** state, char* reason,
                      size_t reason_size) {
  auto ranks = group->global_ranks;
  auto made = (*static_cast<DeviceBackendCreator*>(context))(
      {.global_ranks = {ranks, ranks + group->world_size},
       .group_rank = group->rank,
       .store = *StoreState::Of(*group->store->store).store,
       .key_prefix = "",
       .name = group->name});
  if (!made) return StatusOf(made.error(), reason, reason_size);
  *state = new Backend(*std::move(made));
  return RANKRUN_OK;
}

DeviceBackend& BackendOf(void* state) { return **static_cast<Backend*>(state); }
Handle& HandleOf(void* work) { return *static_cast<Handle*>(work); }

rankrun_status Check(void* state, const rankrun_device_call* call, char* reason,
                     size_t reason_size) {
  return StatusOf(BackendOf(state).Check(CallOf(*call)), reason, reason_size);
}

rankrun_status Enqueue(void* state, const rankrun_device_call* call, void** work, char* reason,
                       size_t reason_size) {
  auto begun = BackendOf(state).Enqueue(CallOf(*call));
  if (!begun) return StatusOf(begun.error(), reason, reason_size);
  *work = new Handle{.work = *begun};
  return RANKRUN_OK;
}

rankrun_status Start(void* state, const rankrun_device_call* call, void** work, char* reason,
                     size_t reason_size) {
  auto begun = BackendOf(state).Start(CallOf(*call));
  if (!begun) return StatusOf(begun.error(), reason, reason_size);
  *work = new Handle{.work = *begun, .message = *begun};
  return RANKRUN_OK;
}

rankrun_device_backend Description(DeviceBackendCreator* creator) {
  return {
      .size = sizeof(rankrun_device_backend),
      .version = RANKRUN_DEVICE_BACKEND_VERSION,
      .name = "outside",
      .context = creator,
      .find_devices = [](void*, char*, size_t) { return RANKRUN_OK; },
      .create = &Create,
      .destroy = [](void* state) { delete static_cast<Backend*>(state); },
      .check = &Check,
      .enqueue = &Enqueue,
      .start = &Start,
      .advance =
          [](void* work, int* flag, char* reason, size_t size) {
            return Flag(HandleOf(work).message->Enqueue(), flag, reason, size);
          },
      .test = [](void* work, int* flag, char* reason,
                 size_t size) { return Flag(HandleOf(work).work->Test(), flag, reason, size); },
      .wait_in =
          [](void* work, void* stream, char* reason, size_t size) {
            return StatusOf(HandleOf(work).work->WaitIn(stream), reason, size);
          },
      .release = [](void* work) { delete &HandleOf(work); },
      .abort = [](void* state) { BackendOf(state).Abort(); },
  };
}

}  // namespace

void RegisterNcclFromOutside() {
  static DeviceBackendCreator creator;
  auto plugin = LoadDevicePlugin("nccl", PluginFolders());
  ASSERT_TRUE(plugin) << plugin.error().message;
  creator = *std::move(plugin);
  rankrun_device_backend description = Description(&creator);
  ASSERT_EQ(rankrun_register_device_backend(&description), RANKRUN_OK) << rankrun_last_error();
}

}  // namespace rankrun::comm
