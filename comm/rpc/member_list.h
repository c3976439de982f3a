#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "comm/rpc/members.h"
#include "store/store.h"

namespace rankrun::comm::rpc {

// The list of a group's workers in a store, through one connection with it. Each change is one
// CompareSet, so that all workers see the same changes in the same order. Each worker has an
// inbox, a queue that gets a text when the list changes.
// Thread: one at a time.
class MemberList {
 public:
  MemberList(std::unique_ptr<store::Store> store, std::string key_prefix)
      : store_(std::move(store)), key_prefix_(std::move(key_prefix)) {}

  store::Store& store() { return *store_; }
  // Prefix of the keys by which two workers connect.
  std::string PairKey(const Member& joiner, const Member& before) const;

  // Errors: those of the store; kProtocol for another text in it.
  Result<Members> Read();
  // Replaces the list by the result of `next`, which may run several times, and tells its
  // members. Returns the new list. Errors: as Read; those of `next`.
  Result<Members> Change(const std::function<Result<Members>(const Members&)>& next);

  // Fails if the store has no queues.
  Result<void> CheckQueues();
  // Waits until the list may have changed, or for the limit. Returns false if the store is
  // lost or a death was reported.
  bool AwaitChange(const Member& self, std::chrono::milliseconds limit);
  void WakeUp(const Member& self);      // ends AwaitChange in another thread
  void EmptyInbox(const Member& self);  // of a worker that has left

 private:
  Result<std::string> Text();
  std::string ListKey() const { return key_prefix_ + "/members"; }
  std::string InboxOf(const Member& member) const {
    return key_prefix_ + "/inbox_" + std::to_string(member.joined) + std::string(store::kNewsMark);
  }

  std::unique_ptr<store::Store> store_;
  std::string key_prefix_;
};

}  // namespace rankrun::comm::rpc
