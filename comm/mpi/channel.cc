#include "comm/mpi/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "comm/mpi/runtime.h"

namespace rankrun::comm::mpi {
namespace {

// Error of a connection that MPI has lost.
constexpr ssize_t kLost = -EIO;

// Takes all bytes out of a socket.
void Drain(int fd) {
  char bytes[4096];
  while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
  }
}

// Writes until the socket takes no more.
void Fill(int fd) {
  const char bytes[4096] = {};
  while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
}

}  // namespace

Result<std::shared_ptr<Channel>> Channel::Open(std::shared_ptr<const Communicator> communicator,
                                               const Place& place) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
    return SystemError("make a pair of sockets", errno);
  }
  const int smallest = 1;  // the kernel raises it to its minimum
  static_cast<void>(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &smallest, sizeof smallest));
  std::shared_ptr<Channel> channel(
      new Channel(std::move(communicator), place, Fd(fds[0]), Fd(fds[1])));
  MutexLock lock(channel->mutex_);
  for (Slot& slot : channel->received_) {
    if (auto ok = channel->Post(slot); !ok) return ok.error();
  }
  return channel;
}

Channel::Channel(std::shared_ptr<const Communicator> communicator, const Place& place, Fd seen,
                 Fd hidden)
    : communicator_(std::move(communicator)),
      place_(place),
      seen_(std::move(seen)),
      hidden_(std::move(hidden)) {}

Channel::~Channel() {
  MutexLock lock(mutex_);
  for (Slot& slot : received_) {
    if (slot.request == MPI_REQUEST_NULL) continue;
    static_cast<void>(MPI_Cancel(&slot.request));
    static_cast<void>(MPI_Wait(&slot.request, MPI_STATUS_IGNORE));
  }
}

Result<void> Channel::Post(Slot& slot) {
  slot.bytes.resize(place_.bytes);
  return Mpi(MPI_Irecv(slot.bytes.data(), static_cast<int>(place_.bytes), MPI_BYTE, place_.peer,
                       place_.tag, communicator_->get(), &slot.request),
             "MPI_Irecv");
}

ssize_t Channel::Send(std::span<const iovec> parts) {
  MutexLock lock(mutex_);
  if (has_ended_) return -EPIPE;
  Slot* slot = FreeSlot();
  if (is_lost_) return kLost;
  if (slot == nullptr) {
    SetWritable(false);
    return -EAGAIN;
  }
  slot->bytes.resize(place_.bytes);
  size_t size = 0;
  for (const iovec& part : parts) {
    size_t bytes = std::min(part.iov_len, place_.bytes - size);
    std::memcpy(slot->bytes.data() + size, part.iov_base, bytes);
    size += bytes;
  }
  int status = MPI_Isend(slot->bytes.data(), static_cast<int>(size), MPI_BYTE, place_.peer,
                         place_.tag, communicator_->get(), &slot->request);
  if (status != MPI_SUCCESS) is_lost_ = true;
  return is_lost_ ? kLost : static_cast<ssize_t>(size);
}

Channel::Slot* Channel::FreeSlot() {
  Slot* free = nullptr;
  for (Slot& slot : sent_) {
    if (IsOver(slot.request)) free = &slot;
  }
  return free;
}

size_t Channel::ContinueSends() {
  size_t count = IsOver(end_) ? 0 : 1;
  for (Slot& slot : sent_) count += IsOver(slot.request) ? 0 : 1;
  return count;
}

// Returns whether a send is over; after an error all are.
bool Channel::IsOver(MPI_Request& request) {
  int is_over = 0;
  if (MPI_Test(&request, &is_over, MPI_STATUS_IGNORE) != MPI_SUCCESS) is_lost_ = true;
  return is_lost_ || is_over != 0;
}

ssize_t Channel::Receive(std::span<const iovec> parts) {
  MutexLock lock(mutex_);
  if (is_closed_) return -EPIPE;
  bool has_arrived = HasArrived();
  if (is_lost_) return kLost;
  if (!has_arrived) {
    SetReadable(false);
    return -EAGAIN;
  }
  if (*arrived_ == 0) return 0;  // the end, for ever
  size_t size = 0;
  Slot& slot = received_[first_];
  for (const iovec& part : parts) {
    size_t bytes = std::min(part.iov_len, *arrived_ - taken_);
    std::memcpy(part.iov_base, slot.bytes.data() + taken_, bytes);
    taken_ += bytes;
    size += bytes;
  }
  if (taken_ == *arrived_ && !Next()) return kLost;
  return static_cast<ssize_t>(size);
}

// Prepares for the next message.
Result<void> Channel::Next() {
  Slot& slot = received_[first_];
  arrived_.reset();
  taken_ = 0;
  first_ = (first_ + 1) % kSlots;
  return Post(slot);
}

bool Channel::HasArrived() {
  if (arrived_) return true;
  MPI_Status status;
  int has_arrived = 0, bytes = 0;
  bool is_sound = MPI_Test(&received_[first_].request, &has_arrived, &status) == MPI_SUCCESS &&
                  (has_arrived == 0 || MPI_Get_count(&status, MPI_BYTE, &bytes) == MPI_SUCCESS);
  if (!is_sound) is_lost_ = true;
  if (!is_sound || has_arrived == 0) return false;
  arrived_ = static_cast<size_t>(bytes);
  return true;
}

void Channel::ShutDown() {
  MutexLock lock(mutex_);
  EndData();
  SetReadable(true);
}

void Channel::Close() {
  MutexLock lock(mutex_);
  EndData();
  is_closed_ = true;
}

void Channel::EndData() {
  if (std::exchange(has_ended_, true)) return;
  static_cast<void>(
      MPI_Isend(nullptr, 0, MPI_BYTE, place_.peer, place_.tag, communicator_->get(), &end_));
}

Channel::Polled Channel::Poll() {
  MutexLock lock(mutex_);
  size_t under_way = ContinueSends();
  bool has_changed = std::exchange(under_way_, under_way) != under_way;
  if (is_closed_) return {.has_parted = HasPartedFromPeer(), .has_changed = has_changed};
  has_changed = ShowArrival() || has_changed;
  if (!is_writable_ && (FreeSlot() != nullptr || is_lost_)) {
    SetWritable(true);
    has_changed = true;
  }
  return {.has_parted = false, .has_changed = has_changed};
}

void Channel::RefreshFd() {
  MutexLock lock(mutex_);
  if (!is_closed_) ShowArrival();
}

// Returns whether data has arrived that poll(2) did not see before.
bool Channel::ShowArrival() {
  if (is_readable_ || !(HasArrived() || is_lost_)) return false;
  SetReadable(true);
  return true;
}

// Discards the messages that arrive. Until the peer has ended its data, too, no other
// communicator may have this one's number, whose messages it would get.
bool Channel::HasPartedFromPeer() {
  while (HasArrived() && *arrived_ > 0 && !is_lost_) {
    if (!Next()) is_lost_ = true;
  }
  bool peer_has_ended = arrived_ && *arrived_ == 0;
  return is_lost_ || (peer_has_ended && under_way_ == 0);
}

void Channel::SetReadable(bool readable) {
  if (std::exchange(is_readable_, readable) == readable) return;
  const char byte = 0;
  if (readable) {
    static_cast<void>(send(hidden_.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
  } else {
    Drain(seen_.get());
  }
}

void Channel::SetWritable(bool writable) {
  if (std::exchange(is_writable_, writable) == writable) return;
  if (writable) {
    Drain(hidden_.get());
  } else {
    Fill(seen_.get());
  }
}

}  // namespace rankrun::comm::mpi
