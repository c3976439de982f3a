#include "comm/world/open_group.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/net/host_port.h"
#include "base/net/socket_address.h"
#include "comm/core/backend.h"
#include "comm/core/time_left.h"
#include "comm/stores/store_state.h"
#include "comm/tcp/agreement.h"
#include "comm/tcp/connect.h"
#include "comm/tcp/listener.h"
#include "comm/tcp/socket.h"
#include "store/clients/tcp_store.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

BackendConfig ConfigOf(const OpenPlace& place, store::Store& store, const Pair& pair,
                       milliseconds timeout) {
  auto [lower, higher] = std::minmax(pair.self, pair.other);
  return {.global_ranks = {lower, higher},
          .group_rank = pair.self == lower ? 0 : 1,
          .store = store,
          .key_prefix = pair.key_prefix,
          .network_interface = place.network_interface,
          .host = place.host,
          .timeout = timeout,
          .deaths = place.deaths};
}

// Whether the error of a connection means that no process is there.
bool IsDark(int error) {
  return error == ECONNREFUSED || error == ETIMEDOUT || error == EHOSTUNREACH || error == EHOSTDOWN;
}

// Waits until a socket is connected, or may not be dark. Returns whether there is one.
bool AwaitLight(std::vector<Fd>& sockets, TimePoint deadline) {
  while (!sockets.empty()) {
    milliseconds left = TimeLeft(deadline);
    if (left == milliseconds(0)) return false;
    std::vector<pollfd> polled;
    for (const Fd& each : sockets) polled.push_back({each.get(), POLLOUT, 0});
    poll(polled.data(), polled.size(), static_cast<int>(left.count()));
    for (size_t i = polled.size(); i-- > 0;) {
      if (polled[i].revents == 0) continue;
      if (!IsDark(tcp::TakeSocketError(polled[i].fd))) return true;
      sockets.erase(sockets.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  return false;
}

}  // namespace

Result<OpenPlace> FindOpenPlace(const std::string& group, const std::shared_ptr<Store>& given,
                                milliseconds timeout, const GetVariable& get) {
  // The number of processes is not known: one suffices for the environment to be right.
  auto environment =
      ReadEnvironment(get, {.global_rank = 0, .world_size = 1, .address = given != nullptr});
  if (!environment) return std::move(environment).error();
  OpenPlace place{
      .network_interface = environment->network_interface,
      .key_prefix = "rankrun/attempt_" + std::to_string(environment->attempt) + "/" + group,
      .deaths = DeathWatch::OfThisProcess()};
  if (given != nullptr) {
    auto own = StoreState::ClientOf(given, timeout);
    if (!own) return std::move(own).error();
    place.store = *std::move(own);
    place.host = "127.0.0.1";
    return place;
  }
  if (!environment->agent_serves) {
    return Error{ErrorCode::kInvalid,
                 "no agent of rankrun or torchrun serves a store: want one in the options"};
  }
  auto store = store::TcpStore::Connect(environment->master_addr, environment->master_port,
                                        {.connect_timeout = timeout, .deaths = place.deaths});
  if (!store) return Error{ErrorCode::kPeerLost, std::move(store).error().message};
  place.host = (*store)->local_address().Host();
  place.store = *std::move(store);
  return place;
}

Result<Beacon> Beacon::Light(const OpenPlace& place) {
  const Pair nobody{.self = 0, .other = 1, .is_joiner = true, .key_prefix = place.key_prefix};
  auto listeners = tcp::Listen(ConfigOf(place, *place.store, nobody, milliseconds(0)));
  if (!listeners) return std::move(listeners).error();
  return Beacon(std::move(listeners->sockets.front()), listeners->addresses.front().ToString());
}

void Beacon::ForgetLooks() const {
  for (;;) {
    Fd look(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!look && errno != EINTR && errno != ECONNABORTED) return;
  }
}

bool Beacon::AnyShines(std::span<const std::string> addresses, milliseconds limit) {
  std::vector<Fd> sockets;
  for (const std::string& each : addresses) {
    auto target = ParseHostPort(each);
    auto address = target ? SocketAddress::FromNumeric(target->host, target->port.value_or(0))
                          : Result<SocketAddress>(Error{ErrorCode::kInvalid, each});
    if (!address) return true;  // nobody can say
    Fd socket = tcp::StartConnecting(*address);
    if (socket) {
      sockets.push_back(std::move(socket));
    } else if (!IsDark(errno)) {
      return true;
    }
  }
  return AwaitLight(sockets, MonotonicClock().Now() + limit);
}

Result<std::unique_ptr<stream::Connection>> ConnectPair(const OpenPlace& place, store::Store& store,
                                                        const Pair& pair, milliseconds timeout,
                                                        const std::atomic<bool>& is_cancelled) {
  BackendConfig config = ConfigOf(place, store, pair, timeout);
  config.is_cancelled = &is_cancelled;
  auto sockets = tcp::ConnectAll(config);
  if (!sockets) {
    // The other process still has to read why this one has failed; a joiner that fails leaves.
    if (pair.is_joiner || is_cancelled.load()) ForgetPair(place, store, pair);
    return std::move(sockets).error();
  }
  Fd& socket = (*sockets)[config.group_rank == 0 ? 1 : 0].control;
  return stream::ConnectionOver(std::move(socket));
}

void ForgetPair(const OpenPlace& place, store::Store& store, const Pair& pair) {
  constexpr std::chrono::seconds kLimit{5};
  const BackendConfig config = ConfigOf(place, store, pair, kLimit);
  tcp::Agreement(config, MonotonicClock().Now() + kLimit).Forget();
}

}  // namespace rankrun::comm
