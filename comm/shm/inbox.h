#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/shm/channel.h"
#include "comm/shm/pending_transfer.h"

namespace rankrun::comm::shm {

// Messages to this rank and its pending receives, matched by source and tag in
// order. A message with a matching receive goes straight to the receive's
// memory. An unexpected message is copied to private memory, so that the
// messages behind it can pass.
// Thread: one at a time.
class Inbox {
 public:
  // Name of a group rank for messages: "rank 3".
  using NameOf = std::function<std::string(int)>;

  explicit Inbox(NameOf name_of) : name_of_(std::move(name_of)) {}
  // Called in the order of group ranks; null for this rank itself.
  void AddSource(std::unique_ptr<ChannelReader> reader);

  // Adds a receive; an unexpected message may finish it at once.
  void Post(PendingRecv& receiving);
  // Reads from each channel at most its capacity, so all remaining bytes of a
  // sender that has ended. Returns whether any bytes were read.
  bool Take();
  // Removes a receive; its memory is not touched afterwards.
  void Forget(const PendingRecv& receiving);
  // Removes all receives, then finishes each with `error`.
  void EndAll(const Error& error);
  // Returns whether a receive is pending or a message is incomplete.
  bool Busy() const;
  // Returns why no more messages can be received from some rank, if so.
  const std::optional<Error>& failure() const { return failure_; }
  // Returns the oldest unexpected message from `source`, or from any rank.
  std::optional<UnexpectedEnvelope> FirstUnexpected(std::optional<int> source) const;

 private:
  // Message without a matching receive so far.
  struct UnexpectedMessage {
    int source;
    MessageHeader header;
    std::unique_ptr<std::byte[]> data;
    bool whole;  // all bytes have been read
  };
  struct Source {
    std::unique_ptr<ChannelReader> reader;
    bool under_way = false;
    MessageHeader header{};
    size_t got = 0;
    // Target of the message in transit; both null: the message is dropped.
    PendingRecv* receiving = nullptr;
    UnexpectedMessage* unexpected = nullptr;
  };

  bool TakeFrom(int source);
  void Open(int source);
  size_t TakePart(Source& from, size_t most);
  void Close(int source);
  void Accept(PendingRecv& receiving, std::list<UnexpectedMessage>::iterator unexpected);
  bool Fits(PendingRecv& receiving, int source, const MessageHeader& header);
  static bool Matches(const PendingRecv& receiving, int source, uint64_t tag) {
    return receiving.envelope.tag == tag && receiving.wanted_source.value_or(source) == source;
  }
  Source& At(int source) { return sources_[static_cast<size_t>(source)]; }

  const NameOf name_of_;
  std::vector<Source> sources_;
  std::list<PendingRecv*> posted_;           // without a message so far, oldest first
  std::list<UnexpectedMessage> unexpected_;  // in the order of arrival
  std::optional<Error> failure_;
};

}  // namespace rankrun::comm::shm
