#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/shm/channel.h"
#include "comm/shm/moving.h"

namespace rankrun::comm {

// The messages for one rank, and who waits for them: they meet by source and
// tag, in order. One that nobody waits for is kept, so that those behind it get
// through; one that somebody waits for goes straight to its place.
// Thread: one at a time.
class Inbox {
 public:
  // "rank 3", of a group rank.
  using NameOf = std::function<std::string(int)>;

  explicit Inbox(NameOf name_of) : name_of_(std::move(name_of)) {}
  // In the order of group ranks; null for this rank itself.
  void AddSource(std::unique_ptr<ChannelReader> reader);

  // It may be over at once.
  void Post(Receiving& receiving);
  // Takes what has come, at most a channel's size of each: all that is left of who
  // writes no more. Whether it was anything.
  bool Take();
  // Nothing of it is touched from here on.
  void Forget(const Receiving& receiving);
  // Forgets all, then ends each with this error.
  void EndAll(const Error& error);
  // Whether somebody waits, or a message has come in part.
  bool Busy() const;
  // The oldest message from there, or from anyone, that nobody waits for.
  std::optional<Unasked> FirstUnasked(std::optional<int> source) const;

 private:
  // A message that nobody waits for yet, or in part.
  struct Parcel {
    int source;
    MessageHeader header;
    std::unique_ptr<std::byte[]> data;
    bool whole;
  };
  struct Source {
    std::unique_ptr<ChannelReader> reader;
    bool under_way = false;
    MessageHeader header{};
    std::size_t got = 0;
    Receiving* receiving = nullptr;  // neither: nobody wants it
    Parcel* parcel = nullptr;
  };

  bool TakeFrom(int source);
  void Open(int source);
  std::size_t TakePart(Source& from, std::size_t most);
  void Close(int source);
  void Accept(Receiving& receiving, std::list<Parcel>::iterator parcel);
  bool Fits(Receiving& receiving, int source, const MessageHeader& header);
  static bool Matches(const Receiving& receiving, int source, uint64_t tag) {
    return receiving.envelope.tag == tag && receiving.wanted_source.value_or(source) == source;
  }
  Source& At(int source) { return sources_[static_cast<std::size_t>(source)]; }

  const NameOf name_of_;
  std::vector<Source> sources_;
  std::list<Receiving*> posted_;  // that no message has met yet, oldest first
  std::list<Parcel> parcels_;     // as they arrived
};

}  // namespace rankrun::comm
