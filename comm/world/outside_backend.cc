#include "comm/world/outside_backend.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/roll_call.h"
#include "comm/core/time_left.h"
#include "comm/group/store_barrier.h"
#include "comm/stores/store_handle.h"
#include "comm/stream/backend.h"
#include "comm/world/outside_collectives.h"
#include "comm/world/outside_description.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// Connections with one peer: messages use the first, collectives the second.
constexpr size_t kPerPeer = 2;

constexpr milliseconds kLookForRefusalEvery{20};

TimePoint Now() { return std::chrono::steady_clock::now(); }

using Description = std::shared_ptr<const rankrun_backend>;

class OutsideConnection final : public stream::Connection {
 public:
  OutsideConnection(Description backend, const rankrun_connection& connection)
      : backend_(std::move(backend)), connection_(connection) {}
  ~OutsideConnection() override { backend_->close(connection_.state); }

  int fd() const override { return connection_.fd; }
  ssize_t Send(std::span<const iovec> parts) override {
    ssize_t moved = Moved(backend_->send, parts);
    return moved == 0 ? -EPROTO : moved;
  }
  ssize_t Receive(std::span<const iovec> parts) override { return Moved(backend_->receive, parts); }
  void ShutDown() override { backend_->shut_down(connection_.state); }

 private:
  template <typename Function>
  ssize_t Moved(Function function, std::span<const iovec> parts) {
    while (parts.front().iov_len == 0) parts = parts.subspan(1);
    ssize_t moved;
    do {
      moved = function(connection_.state, parts.data(), static_cast<int>(parts.size()));
    } while (moved == -EINTR);
    size_t most = 0;
    for (const iovec& part : parts) most += part.iov_len;
    return moved > static_cast<ssize_t>(most) ? -EPROTO : moved;
  }

  const Description backend_;
  const rankrun_connection connection_;
};

// The argument of `connect`, and what it points to.
class GroupToConnect {
 public:
  GroupToConnect(const BackendConfig& config, StoreBarrier& barrier)
      : deaths_(config.deaths),
        barrier_(barrier),
        ranks_(config.global_ranks.begin(), config.global_ranks.end()),
        store_{StoreOver(config.store, config.key_prefix, config.timeout)} {
    for (const std::string& host : config.hosts) hosts_.push_back(host.c_str());
    hosts_.resize(ranks_.size(), "");
    group_ = {.size = sizeof(rankrun_backend_group),
              .rank = config.group_rank,
              .world_size = config.world_size(),
              .reserved = 0,
              .global_ranks = ranks_.data(),
              .hosts = hosts_.data(),
              .address = config.host.c_str(),
              .interfaces = config.network_interface.c_str(),
              .timeout_ms = config.timeout.count(),
              .store = &store_,
              .is_cancelled =
                  [](const rankrun_backend_group* group) {
                    return static_cast<GroupToConnect*>(group->internal)->IsCancelled() ? 1 : 0;
                  },
              .internal = this};
  }

  const rankrun_backend_group* group() const { return &group_; }

 private:
  bool IsCancelled() {
    if (is_cancelled_ || deaths_.has_death()) return true;
    if (Now() < next_look_) return false;
    next_look_ = Now() + kLookForRefusalEvery;
    return is_cancelled_ = barrier_.HasFailed();
  }

  const DeathWatch deaths_;
  StoreBarrier& barrier_;
  const std::vector<int32_t> ranks_;
  std::vector<const char*> hosts_;
  rankrun_store store_;
  rankrun_backend_group group_;
  TimePoint next_look_ = Now() + kLookForRefusalEvery;
  bool is_cancelled_ = false;
};

// Fails unless the library can use the connections.
Result<void> CheckConnections(std::span<const rankrun_connection> connections,
                              const BackendConfig& config) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return SystemError("create an epoll instance", errno);
  auto own = static_cast<size_t>(config.group_rank);
  for (size_t i = 0; i < connections.size(); ++i) {
    if (i / kPerPeer == own) continue;
    const rankrun_connection& connection = connections[i];
    std::string which = "connection " + std::to_string(i % kPerPeer) + " to " +
                        RanksInWords({config.global_ranks[i / kPerPeer]});
    if (connection.state == nullptr || connection.reserved != 0) {
      return Error{ErrorCode::kSystem,
                   which + (connection.state == nullptr ? " is absent" : " has reserved set")};
    }
    // The kernel refuses a descriptor that it cannot poll, and one that it has.
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, connection.fd, &event) != 0) {
      return SystemError(
          "wait for " + which + " by its descriptor " + std::to_string(connection.fd), errno);
    }
  }
  return {};
}

std::vector<stream::PeerConnections> PeersOf(const Description& backend,
                                             std::span<const rankrun_connection> connections,
                                             const BackendConfig& config) {
  std::vector<stream::PeerConnections> peers(config.global_ranks.size());
  for (size_t peer = 0; peer < peers.size(); ++peer) {
    if (peer == static_cast<size_t>(config.group_rank)) continue;
    auto with_peer = connections.subspan(kPerPeer * peer, kPerPeer);
    peers[peer].control = std::make_unique<OutsideConnection>(backend, with_peer[0]);
    peers[peer].data.push_back(std::make_unique<OutsideConnection>(backend, with_peer[1]));
  }
  return peers;
}

Result<std::vector<stream::PeerConnections>> Connect(const Description& backend,
                                                     const BackendConfig& config,
                                                     const GroupToConnect& group) {
  std::vector<rankrun_connection> connections(kPerPeer * config.global_ranks.size(),
                                              {.state = nullptr, .fd = -1, .reserved = 0});
  auto ok = Ask(backend->connect, backend->context, group.group(), connections.data());
  if (!ok) return NoRefusal(std::move(ok).error());
  ok = CheckConnections(connections, config);
  if (ok) return PeersOf(backend, connections, config);
  for (const rankrun_connection& connection : connections) {
    if (connection.state != nullptr) backend->close(connection.state);
  }
  return std::move(ok).error();
}

}  // namespace

rankrun_backend Complete(const rankrun_backend& backend) {
  rankrun_backend complete{};
  std::memcpy(&complete, &backend, std::min<size_t>(backend.size, sizeof complete));
  complete.size = sizeof complete;
  return complete;
}

Result<void> CheckOutsideBackend(const rankrun_backend& backend) {
  auto ok = CheckDescription(backend, RANKRUN_BACKEND_VERSION, "rankrun_backend",
                             offsetof(rankrun_backend, open_group));
  if (!ok) return ok;
  const rankrun_backend complete = Complete(backend);
  ok = CheckFunctions({{"connect", complete.connect != nullptr},
                       {"send", complete.send != nullptr},
                       {"receive", complete.receive != nullptr},
                       {"shut_down", complete.shut_down != nullptr},
                       {"close", complete.close != nullptr}});
  bool has_own = complete.open_group != nullptr || complete.takes != nullptr ||
                 complete.run != nullptr || complete.close_group != nullptr;
  if (!ok || !has_own) return ok;
  return CheckFunctions({{"open_group", complete.open_group != nullptr},
                         {"takes", complete.takes != nullptr},
                         {"run", complete.run != nullptr},
                         {"close_group", complete.close_group != nullptr}});
}

BackendCreator CreatorOf(const rankrun_backend& backend) {
  return [&backend](const BackendConfig& config) { return ConnectOutsideBackend(backend, config); };
}

Result<std::unique_ptr<Backend>> ConnectOutsideBackend(const rankrun_backend& backend,
                                                       const BackendConfig& config) {
  const TimePoint began = Now();
  const TimePoint deadline = began + Bounded(config.timeout);
  StoreBarrier barrier(config.store, config.key_prefix + "/connected", config.group_rank,
                       config.global_ranks);
  const auto description = std::make_shared<const rankrun_backend>(Complete(backend));
  GroupToConnect group(config, barrier);
  auto refused = [&](Error why) {
    int rank = config.global_ranks[static_cast<size_t>(config.group_rank)];
    return barrier.Refuse(std::move(why).In(RanksInWords({rank})));
  };
  auto peers = Connect(description, config, group);
  if (config.deaths.has_death()) return config.deaths.ErrorSince(began);
  if (!peers) return refused(std::move(peers).error());
  auto own = OpenOwnCollectives(description, group.group());
  if (config.deaths.has_death()) return config.deaths.ErrorSince(began);
  if (!own) return refused(std::move(own).error());
  if (auto ok = barrier.Pass(TimeLeft(deadline)); !ok) return std::move(ok).error();
  return std::unique_ptr<Backend>(std::make_unique<stream::StreamBackend>(
      config, *std::move(peers), stream::CountRanksHere(config), *std::move(own)));
}

}  // namespace rankrun::comm
