#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/core/device_backend.h"

namespace rankrun::comm {

// Work that is done once the test says so, or fails.
struct FakeDeviceWork : DeviceWork {
  Result<bool> Test() override {
    if (fails.load()) return Error{ErrorCode::kSystem, "the device has failed"};
    return done.load();
  }
  Result<void> WaitIn(void* stream) override {
    waited_in = stream;
    return {};
  }

  std::atomic<bool> done = false;
  std::atomic<bool> fails = false;
  std::atomic<void*> waited_in = nullptr;
};

// Message whose way to the device is open once the test says so.
struct FakeDeviceMessage : DeviceMessage {
  Result<bool> Enqueue() override { return is_open.load(); }
  Result<bool> Test() override { return done.load(); }
  Result<void> WaitIn(void* stream) override {
    waited_in = stream;
    return {};
  }

  std::atomic<bool> is_open = false;
  std::atomic<bool> done = false;
  std::atomic<void*> waited_in = nullptr;
};

// Backend whose works never end by themselves.
struct FakeDeviceBackend : DeviceBackend {
  // Record of the calls, which outlives the backend.
  struct Seen {
    std::vector<DeviceCall> calls;
    std::mutex mutex;
    std::vector<std::shared_ptr<FakeDeviceWork>> works;  // guarded by the mutex
    std::vector<std::shared_ptr<FakeDeviceMessage>> messages;
    std::atomic<bool> aborted = false;
  };

  explicit FakeDeviceBackend(std::shared_ptr<Seen> by_the_test) : seen(std::move(by_the_test)) {}

  Result<void> Check(const DeviceCall& call) const override {
    if (call.device == 0) return {};
    return Error{ErrorCode::kInvalid, "there is one device"};
  }
  Result<std::shared_ptr<DeviceWork>> Enqueue(const DeviceCall& call) override {
    seen->calls.push_back(call);
    in_enqueue();
    if (seen->aborted.load()) return Error{ErrorCode::kCancelled, "aborted"};
    if (failure) return *failure;
    std::lock_guard lock(seen->mutex);
    seen->works.push_back(std::make_shared<FakeDeviceWork>());
    seen->works.back()->fails = seen->aborted.load();
    return std::shared_ptr<DeviceWork>(seen->works.back());
  }
  Result<std::shared_ptr<DeviceMessage>> Start(const DeviceCall& call) override {
    seen->calls.push_back(call);
    if (failure) return *failure;
    seen->messages.push_back(std::make_shared<FakeDeviceMessage>());
    return std::shared_ptr<DeviceMessage>(seen->messages.back());
  }
  void Abort() override {
    std::lock_guard lock(seen->mutex);
    seen->aborted = true;
    for (const auto& work : seen->works) work->fails = true;
  }

  const std::shared_ptr<Seen> seen;
  std::function<void()> in_enqueue = [] {};
  std::optional<Error> failure;
};

}  // namespace rankrun::comm
