#pragma once

#include <mpi.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"

namespace rankrun::comm::mpi {

// Communicator of a group. Freed with the last channel that uses it.
class Communicator {
 public:
  explicit Communicator(MPI_Comm comm) : comm_(comm) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() { static_cast<void>(MPI_Comm_free(&comm_)); }

  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_;
};

// Bytes to and from one peer, in messages of MPI. An empty message is the end of the data.
// poll(2) sees one end of a pair of sockets, through which no data goes: it is readable
// while there is data, and writable while a send would be taken.
// Thread: any.
class Channel {
 public:
  struct Place {
    int peer;      // rank in the communicator
    int tag;       // of both directions
    size_t bytes;  // of a message, at most
  };
  // State of a channel after Poll.
  struct Polled {
    bool has_parted;   // both ends are closed and all data is sent
    bool has_changed;  // since the Poll before
  };

  // Errors: kSystem.
  static Result<std::shared_ptr<Channel>> Open(std::shared_ptr<const Communicator> communicator,
                                               const Place& place);
  ~Channel();

  int fd() const { return seen_.get(); }
  void RefreshFd();
  // As stream::Connection.
  ssize_t Send(std::span<const iovec> parts);
  ssize_t Receive(std::span<const iovec> parts);
  void ShutDown();
  // Ends the data, and discards later messages. Poll completes the sends.
  void Close();

  // Continues sends, and shows poll(2) that data has arrived, or that there is room again.
  // For the thread of progress.
  Polled Poll();

 private:
  static constexpr size_t kSlots = 4;  // messages under way, in each direction

  struct Slot {
    std::vector<std::byte> bytes = {};  // empty until the first use
    MPI_Request request = MPI_REQUEST_NULL;
  };
  Channel(std::shared_ptr<const Communicator> communicator, const Place& place, Fd seen, Fd hidden);

  Result<void> Post(Slot& slot) REQUIRES(mutex_);
  // Returns a slot without a message under way; null: there is none.
  Slot* FreeSlot() REQUIRES(mutex_);
  // Tests all sends, which continues them. Returns the number of those under way.
  size_t ContinueSends() REQUIRES(mutex_);
  bool IsOver(MPI_Request& request) REQUIRES(mutex_);
  // Returns whether there is data, or its end, for Receive.
  bool HasArrived() REQUIRES(mutex_);
  Result<void> Next() REQUIRES(mutex_);
  bool ShowArrival() REQUIRES(mutex_);
  bool HasPartedFromPeer() REQUIRES(mutex_);
  void EndData() REQUIRES(mutex_);
  void SetReadable(bool readable) REQUIRES(mutex_);
  void SetWritable(bool writable) REQUIRES(mutex_);

  const std::shared_ptr<const Communicator> communicator_;
  const Place place_;
  const Fd seen_;    // by poll(2)
  const Fd hidden_;  // its other end
  Mutex mutex_;
  std::array<Slot, kSlots> sent_ GUARDED_BY(mutex_);
  std::array<Slot, kSlots> received_ GUARDED_BY(mutex_);
  size_t first_ GUARDED_BY(mutex_) = 0;                    // of received_, to arrive next
  std::optional<size_t> arrived_ GUARDED_BY(mutex_) = {};  // bytes of that one
  size_t taken_ GUARDED_BY(mutex_) = 0;                    // of these
  MPI_Request end_ GUARDED_BY(mutex_) = MPI_REQUEST_NULL;  // empty message
  bool has_ended_ GUARDED_BY(mutex_) = false;              // it is sent
  size_t under_way_ GUARDED_BY(mutex_) = 0;                // sends at the last Poll
  bool is_lost_ GUARDED_BY(mutex_) = false;                // MPI has reported an error
  bool is_closed_ GUARDED_BY(mutex_) = false;
  bool is_readable_ GUARDED_BY(mutex_) = false;
  bool is_writable_ GUARDED_BY(mutex_) = true;
};

}  // namespace rankrun::comm::mpi
