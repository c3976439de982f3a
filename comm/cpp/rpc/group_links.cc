#include "comm/cpp/rpc/group_links.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <rankrun/dist_error.h>

#include "base/process/start_thread.h"

namespace rankrun::rpc {
namespace {

void Wake(const Fd& wake) { static_cast<void>(eventfd_write(wake.get(), 1)); }

}  // namespace

Result<std::unique_ptr<GroupLinks>> GroupLinks::Make(Context& context, int threads,
                                                     std::vector<Fd>& sockets) {
  const ProcessGroup& world = context.World();
  const int self = world.group_rank();
  std::unique_ptr<GroupLinks> links(new GroupLinks);
  const int movers = std::min(threads, world.world_size() - 1);
  for (int i = 0; i < movers; ++i) {
    Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake) return SystemError("create an eventfd", errno);
    links->movers_.push_back(
        std::make_unique<Mover>(Mover{.wake = std::make_shared<const Fd>(std::move(wake))}));
  }
  sockets.resize(static_cast<size_t>(world.world_size()));
  // In the order of the pairs (0, 1), (0, 2) ... (1, 2) ... on all ranks, so that no ranks
  // wait in a circle.
  for (int other = 0; other < world.world_size(); ++other) {
    if (other == self) continue;
    ProcessGroup& group = context.NewGroup({.ranks = {std::min(self, other), std::max(self, other)},
                                            .description = "rpc",
                                            .use_local_synchronization = true});
    auto socket = Add(group, *links->movers_[static_cast<size_t>(other % movers)]);
    if (!socket) return std::move(socket).error();
    sockets[static_cast<size_t>(other)] = *std::move(socket);
  }
  for (const auto& mover : links->movers_) {
    MutexLock lock(links->mutex_);
    auto thread = StartThread([made = links.get(), each = mover.get()] { made->Run(*each); });
    if (!thread) return std::move(thread).error();
    mover->thread = *std::move(thread);
    links->running_ += 1;
  }
  return links;
}

// Returns the end of a socket pair that has the bytes of the group.
Result<Fd> GroupLinks::Add(ProcessGroup& group, Mover& mover) {
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return SystemError("create a socket pair", errno);
  }
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  mover.pipes.push_back(
      std::make_unique<GroupPipe>(group, std::move(ours), [wake = mover.wake] { Wake(*wake); }));
  return theirs;
}

void GroupLinks::Run(Mover& mover) {
  std::vector<pollfd> polled;
  for (;;) {
    polled.assign(1, {.fd = mover.wake->get(), .events = POLLIN, .revents = 0});
    bool is_over = true;
    for (const auto& pipe : mover.pipes) {
      pipe->Advance();
      is_over = is_over && pipe->is_over();
      int events = (pipe->wants_read() ? POLLIN : 0) | (pipe->wants_write() ? POLLOUT : 0);
      if (events == 0) continue;
      polled.push_back({.fd = pipe->fd(), .events = static_cast<int16_t>(events), .revents = 0});
    }
    {
      MutexLock lock(mutex_);
      if (!is_over && !is_stopping_) {
        lock.Unlock();
      } else {
        running_ -= 1;
        changed_.NotifyAll();
        return;
      }
    }
    poll(polled.data(), polled.size(), -1);
    eventfd_t count = 0;
    static_cast<void>(eventfd_read(mover.wake->get(), &count));
  }
}

void GroupLinks::AwaitEnd(TimePoint deadline) {
  MutexLock lock(mutex_);
  while (running_ > 0 && MonotonicClock().Now() < deadline) changed_.WaitUntil(mutex_, deadline);
}

void GroupLinks::Stop() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  for (const auto& mover : movers_) {
    Wake(*mover->wake);
    if (mover->thread.joinable()) mover->thread.join();
  }
}

}  // namespace rankrun::rpc
