#include "comm/rpc/member_list.h"

#include <span>
#include <utility>

namespace rankrun::comm::rpc {

std::string MemberList::PairKey(const Member& joiner, const Member& before) const {
  return key_prefix_ + "/join_" + std::to_string(joiner.joined) + "/" +
         std::to_string(before.joined);
}

// Returns an empty text if there is no list yet.
Result<std::string> MemberList::Text() {
  const std::string key = ListKey();
  auto exists = store_->Check(std::span(&key, 1));
  if (!exists) return std::move(exists).error();
  if (!*exists) return std::string();
  return store_->Get(key, std::chrono::milliseconds(0));
}

Result<Members> MemberList::Read() {
  auto text = Text();
  if (!text) return std::move(text).error();
  if (text->empty()) return Members{};
  return MembersIn(*text);
}

Result<Members> MemberList::Change(const std::function<Result<Members>(const Members&)>& next) {
  for (;;) {
    auto text = Text();
    if (!text) return std::move(text).error();
    auto before = text->empty() ? Members{} : MembersIn(*text);
    if (!before) return before;
    auto after = next(*before);
    if (!after) return after;
    auto stored = store_->CompareSet(ListKey(), *text, TextOf(*after));
    if (!stored) return std::move(stored).error();
    if (!stored->swapped) continue;  // another worker was faster
    for (const Member& each : after->list) WakeUp(each);
    // A worker that has left meanwhile does not empty its inbox any more.
    if (auto now = Read()) {
      for (const Member& each : after->list) {
        if (!now->Has(each)) EmptyInbox(each);
      }
    }
    return after;
  }
}

Result<void> MemberList::CheckQueues() {
  auto length = store_->QueueLength(key_prefix_ + "/inbox");
  if (!length) return std::move(length).error();
  return {};
}

bool MemberList::AwaitChange(const Member& self, std::chrono::milliseconds limit) {
  auto told = store_->QueuePop(InboxOf(self), limit);
  return told || told.error().code == ErrorCode::kTimeout;
}

void MemberList::WakeUp(const Member& self) {
  static_cast<void>(store_->QueuePush(InboxOf(self), ""));
}

void MemberList::EmptyInbox(const Member& self) {
  for (;;) {
    auto told = store_->TryQueuePop(InboxOf(self));
    if (!told || !*told) return;
  }
}

}  // namespace rankrun::comm::rpc
