#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/shm/channel.h"
#include "comm/shm/moving.h"

namespace rankrun::comm {

// The messages of one rank to the others. Each is over when its last byte is in
// the channel.
// Thread: one at a time.
class Outbox {
 public:
  // "rank 3", of a group rank.
  using NameOf = std::function<std::string(int)>;

  explicit Outbox(NameOf name_of) : name_of_(std::move(name_of)) {}
  // In the order of group ranks; null for this rank itself.
  void AddDestination(std::unique_ptr<ChannelWriter> writer);

  // It may be over at once.
  void Post(Sending& sending);
  // Writes what there is room for, at most a channel's size to each. Whether it
  // was anything.
  bool Put();
  // Nothing of it is touched from here on. If it had begun, no message gets to
  // its destination any more.
  void Forget(const Sending& sending);
  // Forgets all, then ends each with this error.
  void EndAll(const Error& error);
  bool Busy() const { return waiting_ > 0; }

 private:
  struct Destination {
    std::unique_ptr<ChannelWriter> writer;
    std::deque<Sending*> queue;
    uint64_t messages = 0;  // begun
    bool begun = false;     // the first of the queue
    std::size_t done = 0;   // bytes of it
    bool broken = false;
  };

  bool PutTo(Destination& to);
  void Begin(Destination& to);
  bool PutPart(Destination& to, std::size_t room);
  std::optional<Error> Refusal(const Destination& to) const;

  const NameOf name_of_;
  std::vector<Destination> destinations_;
  std::size_t waiting_ = 0;  // in all queues
};

}  // namespace rankrun::comm
