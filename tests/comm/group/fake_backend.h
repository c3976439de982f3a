#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/core/backend.h"

namespace rankrun::comm {

// Backend without data transfer; calls succeed until `failure` is set.
struct FakeBackend : Backend {
  struct Seen {
    Operation operation;
    std::chrono::milliseconds timeout;
  };

  Result<void> Run(const Collective&, const Call& call) override { return Do(call); }
  Result<void> Conclude(const Call&) override {
    if (fails_elsewhere) return *fails_elsewhere;
    return {};
  }
  bool Refuse(const Call& call, const std::string& reason) override {
    refused.push_back(Describe(call.operation) + ": " + reason);
    return true;
  }
  std::optional<Error> FindFailure(TimePoint) override {
    return other_has_failed ? std::optional(Error{ErrorCode::kPeerLost, "rank 1 has failed"})
                            : std::nullopt;
  }
  void Abort(const std::string& reason) override {
    aborted = reason;
    while_aborting();
    has_ended = true;
  }
  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock, int, const Envelope&) override {
    if (!has_messages) return Error{ErrorCode::kPeerLost, "no messages"};
    return std::unique_ptr<Transfer>(std::make_unique<NeverOver>(*this));
  }
  Result<std::unique_ptr<Transfer>> StartRecv(Block, std::optional<int>, const Envelope&) override {
    if (!has_messages) return Error{ErrorCode::kPeerLost, "no messages"};
    has_begun = true;
    has_begun.notify_all();
    return std::unique_ptr<Transfer>(std::make_unique<NeverOver>(*this));
  }

  // Message without its other end, which Abort ends.
  struct NeverOver : Transfer {
    explicit NeverOver(FakeBackend& owner) : backend(owner) {}
    ~NeverOver() override { EXPECT_TRUE(backend.has_ended) << "a pending message was destroyed"; }
    bool Test() override { return backend.has_ended; }
    Result<void> Wait(std::chrono::milliseconds timeout) override {
      if (backend.has_ended) return Error{ErrorCode::kCancelled, "aborted"};
      std::this_thread::sleep_for(timeout);
      return Error{ErrorCode::kTimeout, "not yet"};
    }
    int source() const override { return 0; }

    FakeBackend& backend;
  };

  Result<void> Do(const Call& call) {
    calls.push_back({call.operation, call.timeout});
    in_call();
    if (failure) return *failure;
    return {};
  }

  std::vector<Seen> calls;
  std::vector<std::string> refused;
  std::string aborted;
  std::function<void()> in_call = [] {};
  std::function<void()> while_aborting = [] {};
  std::atomic<bool> other_has_failed = false;
  std::atomic<bool> has_ended = false;
  bool has_messages = false;
  std::atomic<bool> has_begun = false;  // a message has started
  std::optional<Error> failure;
  std::optional<Error> fails_elsewhere;  // in the call whose data is complete here
};

}  // namespace rankrun::comm
