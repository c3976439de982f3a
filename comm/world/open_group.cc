#include "comm/world/open_group.h"

#include <algorithm>
#include <utility>

#include "comm/core/backend.h"
#include "comm/core/time_left.h"
#include "comm/stores/store_state.h"
#include "comm/tcp/agreement.h"
#include "comm/tcp/connect.h"
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
  return std::unique_ptr<stream::Connection>(
      std::make_unique<stream::SocketConnection>(std::move(socket)));
}

void ForgetPair(const OpenPlace& place, store::Store& store, const Pair& pair) {
  constexpr std::chrono::seconds kLimit{5};
  const BackendConfig config = ConfigOf(place, store, pair, kLimit);
  tcp::Agreement(config, MonotonicClock().Now() + kLimit).Forget();
}

}  // namespace rankrun::comm
