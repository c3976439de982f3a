#include <utility>
#include <vector>

#include "comm/core/current_stream.h"
#include "comm/core/pair_sizes.h"
#include "comm/group/group.h"
#include "comm/group/group_run.h"

// Collectives on memory of GPUs. The device runs them in the order of its stream; the
// call returns when it is enqueued. At the same time the ranks compare their calls by
// the backend for CPU memory, which also notices that a rank is missing or has died.
namespace rankrun::comm {
namespace {

Error NoDevices(int device, const std::string& backend) {
  return {ErrorCode::kInvalid, "the call is for cuda:" + std::to_string(device) +
                                   ", but the group's backend is \"" + backend +
                                   "\": want one such as \"cpu:shm,cuda:nccl\""};
}

}  // namespace

DeviceHooks Group::HooksOfDevices() {
  return {
      .name = DisplayName(identity_) + " on cuda",
      .world_size = identity_.world_size(),
      .global_rank = identity_.global_rank,
      .deaths = identity_.deaths,
      .find_failure = [this](TimePoint since) { return backend_->FindFailure(since); },
      .failed =
          [this](const Operation& operation, Error error, std::chrono::milliseconds timeout) {
            return Failed(operation, std::move(error), timeout);
          },
      .completed =
          [this](const Operation& operation, TimePoint since) {
            if (LogsCalls()) LogEnd(operation, identity_, since);
          },
      .start_message =
          [this](const Operation& operation, Operation::Kind direction, uint64_t tag, Block data) {
            return StartInMemory({.operation = operation,
                                  .is_send = direction == Operation::Kind::kSend,
                                  .envelope = {.tag = tag, .dtype = DType::kUInt8},
                                  .peer = operation.root,
                                  .since = MonotonicClock().Now(),
                                  .timeout = identity_.timeout},
                                 data);
          }};
}

Result<Work> Group::BarrierOn(const Device& device, const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Operation::Kind::kBarrier);
  Operation operation{.kind = Operation::Kind::kBarrier, .device = device.type};
  if (device.type != DeviceType::kCuda) {
    operation.device = DeviceType::kCpu;
    return Refuse(operation, {ErrorCode::kInvalid, "the device is no GPU: want one"}, options);
  }
  return RunOnDevice(operation, options, {.device = device.index});
}

Result<std::shared_ptr<void>> Group::Register(const Tensor& memory) {
  const CallCount::Scope in_call(calls_);
  auto refused = [](const std::string& why) { return Error{ErrorCode::kInvalid, why}; };
  if (!is_member()) return refused("this rank is no member");
  if (auto ok = CheckTensor("memory", memory); !ok) return ok.error();
  if (memory.device.type != DeviceType::kCuda) return refused("the memory is not on a GPU");
  if (memory.count == 0) return refused("the memory is empty");
  if (devices_ == nullptr) return NoDevices(memory.device.index, identity_.backend);
  MutexLock lock(mutex_);
  if (broken_.is_set()) return refused("the group is broken: " + broken_reason());
  return devices_->Register(BlockOf(memory), memory.device.index);
}

Result<std::shared_ptr<void>> Group::SplitDevices(const DevicePart& part, TimePoint deadline) {
  const CallCount::Scope in_call(calls_);
  if (devices_ == nullptr) return std::shared_ptr<void>();
  MutexLock lock(mutex_);
  if (broken_.is_set()) return std::shared_ptr<void>();
  auto connection = devices_->Split(part, deadline);
  lock.Unlock();
  // Also ends the wait of other ranks.
  if (!connection) End("ended the group: SplitGroup: " + connection.error().message);
  return connection;
}

Result<Work> Group::RunOnDevice(Operation operation, const CallOptions& options, DeviceCall call) {
  Result<std::chrono::milliseconds> limit = Effective(options.timeout);
  if (!limit) return Refuse(operation, limit.error(), options);
  operation.part_of = PartOf::OfThisThread();
  call.operation = operation;
  call.timeout = *limit;
  call.stream = CurrentStream();
  if (devices_ == nullptr)
    return Refuse(operation, NoDevices(call.device, identity_.backend), options);
  if (auto ok = devices_->Check(call); !ok) return Refuse(operation, ok.error(), options);
  MutexLock lock(mutex_);
  operation.number = operations_ + 1;
  if (broken_.is_set()) return Broken(Describe(operation) + Place());
  operations_ += 1;
  call.operation = operation;
  if (LogsCalls()) LogBegin(operation, identity_);
  OperationEvent event = events_.Begin(operation);
  auto compared = CompareDeviceCall(call);
  if (!compared) event.End(false);
  if (!compared) return Failed(operation, std::move(compared).error(), *limit);
  if (identity_.checks_all_calls) {  // no device begins a call that another rank lacks
    const bool is_over = (*compared)->AwaitUnlessInterrupted();
    if (!is_over || !(*compared)->result()) {
      event.End(false);
      if (is_over) return Error((*compared)->result().error());
      return Failed(operation, InterruptibleCall::Failure(), *limit);
    }
  }
  auto state = devices_->calls().Run(call, *compared);
  EndWith(event, state);
  if (!state) return std::move(state).error();
  lock.Unlock();
  auto handle = std::make_shared<WorkHandle>(*state, operation);
  if (options.async) return Work(operation.number, std::move(handle));
  handle->NoteUse();
  bool is_for_host = operation.kind == Operation::Kind::kBarrier;
  if (is_for_host && !(*state)->AwaitUnlessInterrupted()) {
    return Failed(operation, InterruptibleCall::Failure(), *limit);
  }
  if (auto ok = (*state)->AwaitIn(call.stream); !ok) return Error(ok.error());
  return Work(operation.number, std::move(handle));
}

// Starts a message on memory of a GPU.
Result<std::shared_ptr<WorkState>> Group::BeginOnDevice(const Messages::Message& message,
                                                        const ConstTensor& tensor) {
  auto refused = [&](Error reason) {
    return std::move(reason).In(NameOf(message.operation) + Place());
  };
  if (devices_ == nullptr) return refused(NoDevices(tensor.device.index, identity_.backend));
  if (!message.peer) {
    return refused({ErrorCode::kInvalid, "the source is any rank: want one rank for GPU memory"});
  }
  if (*message.peer == identity_.group_rank) {
    return refused(
        {ErrorCode::kInvalid, "it is a message of this rank to itself: want a copy on the GPU"});
  }
  DeviceCall call{.operation = message.operation,
                  .device = tensor.device.index,
                  .stream = CurrentStream(),
                  .timeout = message.timeout};
  ConstBlock block = BlockOf(tensor);
  if (message.is_send) {
    call.inputs = {block};
  } else {
    call.outputs = Writable({block});
  }
  if (auto ok = devices_->Check(call); !ok) return refused(ok.error());
  return devices_->messages().Start(call);
}

// Starts the comparison; the returned state ends with it.
Result<std::shared_ptr<WorkState>> Group::CompareDeviceCall(const DeviceCall& call) {
  auto state = std::make_shared<WorkState>();
  auto pushed = queue_->Push(
      [this, state, operation = call.operation, timeout = call.timeout,
       stack = CallStack::IfShown(),
       sizes = SizesOf(call.data(), identity_.group_rank, identity_.world_size())]() mutable {
        auto body = [&](Backend& backend, const Call& compared) -> Result<void> {
          auto ok = CompareCalls(
              operation, std::move(sizes), identity_.group_rank, identity_.global_ranks,
              [&](const Collective& collective) { return backend.Run(collective, compared); });
          if (ok || ok.error().code != ErrorCode::kInvalid) return ok;
          // Another rank has refused the call, which this one may have enqueued.
          return Error{ErrorCode::kSystem, ok.error().message};
        };
        auto ok = Execute<true, false>(operation, timeout, body);  // the event records it
        state->Finish(WithStack(std::move(ok), stack));
      });
  if (!pushed) return std::move(pushed).error();
  return state;
}

}  // namespace rankrun::comm
