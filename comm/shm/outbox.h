#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/shm/channel.h"
#include "comm/shm/pending_transfer.h"

namespace rankrun::comm::shm {

// Messages of this rank to the others. A send is over when its last byte is in
// the channel, or when its receiver has refused it.
// Thread: one at a time.
class Outbox {
 public:
  // Name of a group rank for messages: "rank 3".
  using NameOf = std::function<std::string(int)>;

  explicit Outbox(NameOf name_of) : name_of_(std::move(name_of)) {}
  // Called in the order of group ranks; null for this rank itself.
  void AddDestination(std::unique_ptr<ChannelWriter> writer);

  // Adds a send; it is finished at once if there is room for all its bytes.
  void Post(PendingSend& sending);
  // Writes as many bytes as there is room for, at most the capacity of each
  // channel. Returns whether any bytes were written.
  bool Put();
  // Removes a send; its memory is not touched afterwards. If part of it was
  // written, its channel is broken and carries no further message.
  void Forget(const PendingSend& sending);
  // Removes all sends, then finishes each with `error`.
  void EndAll(const Error& error);
  bool Busy() const { return waiting_ > 0; }
  // Returns why no more messages can be sent to some rank, if so.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  struct Destination {
    std::unique_ptr<ChannelWriter> writer;
    std::deque<PendingSend*> queue;
    uint64_t messages = 0;  // number of messages begun
    bool begun = false;     // whether the first send of the queue is begun
    size_t done = 0;        // bytes of it that are written
    size_t owed = 0;        // bytes of a refused message, for which the receiver waits
    bool broken = false;
  };

  bool PutTo(Destination& to);
  void Begin(Destination& to);
  bool PutPart(Destination& to, size_t room);
  void EndFirst(Destination& to, std::optional<Error> error);
  bool EndIfRefused(Destination& to);
  std::optional<Error> Refusal(const Destination& to) const;

  const NameOf name_of_;
  std::vector<Destination> destinations_;
  size_t waiting_ = 0;  // sends in all queues
  std::optional<Error> failure_;
};

}  // namespace rankrun::comm::shm
