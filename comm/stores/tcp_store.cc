#include "store/clients/tcp_store.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <rankrun/store.h>

#include "base/fd.h"
#include "base/net/listen_socket.h"
#include "base/net/network_interface.h"
#include "base/status/death_watch.h"
#include "base/status/status_page.h"
#include "comm/core/throw.h"
#include "comm/stores/shared_servers.h"
#include "comm/stores/store_state.h"
#include "store/clients/describe.h"

namespace rankrun {
namespace comm {

namespace {

using std::chrono::milliseconds;
using State = std::unique_ptr<StoreState>;

// Interval at which the number of workers is read, as in PyTorch.
constexpr milliseconds kPause{10};

Error Invalid(std::string message) {
  return Error{ErrorCode::kInvalid, "TcpStore: " + std::move(message)};
}

Result<void> Check(const TcpStoreOptions& options) {
  if (options.host.empty()) return Invalid("host is empty: want the server's name or address");
  if (options.port == 0 && !options.is_server) {
    return Invalid("port is 0: want the server's port, since this is not the server");
  }
  if (options.world_size && *options.world_size < 1) {
    return Invalid("world_size is " + std::to_string(*options.world_size) + ": want at least 1");
  }
  if (options.listen_fd == Fd::kNone) return {};
  if (!options.is_server) {
    return Invalid("listen_fd is " + std::to_string(options.listen_fd) +
                   ", but this is not the server: want is_server");
  }
  auto address = ListenSocketAddress(options.listen_fd);
  if (!address) return std::move(address).error().In("TcpStore: listen_fd");
  return {};
}

// All errors become kPeerLost: to the program, a failed look-up and a time-out
// both mean that the server cannot be reached.
Result<std::unique_ptr<store::TcpStore>> Connect(const std::string& host, uint16_t port,
                                                 milliseconds timeout) {
  auto store = store::TcpStore::Connect(
      host, port, {.connect_timeout = timeout, .deaths = DeathWatch::OfThisProcess()});
  if (!store) return Error{ErrorCode::kPeerLost, std::move(store).error().message};
  return store;
}

// Adds this store to the count of workers. The one that serves waits for all.
Result<void> MeetWorkers(store::TcpStore& store, const TcpStoreOptions& options,
                         TimePoint deadline) {
  if (!options.world_size || !options.wait_for_workers) return {};
  DeathWatch deaths = DeathWatch::OfThisProcess();
  TimePoint began = MonotonicClock().Now();
  auto count = store.CountWorkers(1);
  while (count && options.is_server && *count < *options.world_size) {
    if (deaths.has_death()) return deaths.ErrorSince(began).In("wait for workers");
    TimePoint now = MonotonicClock().Now();
    if (now >= deadline) {
      return Error{ErrorCode::kTimeout, "wait for workers: " + std::to_string(*count) + " of " +
                                            std::to_string(*options.world_size) +
                                            " have connected within " +
                                            std::to_string(options.timeout.count()) + " ms"};
    }
    deaths.SleepUntil(std::min<TimePoint>(now + kPause, deadline));
    count = store.CountWorkers(0);
  }
  if (!count) return std::move(count).error();
  return {};
}

Result<OwnServer> Serve(const TcpStoreOptions& options) {
  auto& shared = SharedServers::OfThisProcess();
  if (options.listen_fd != Fd::kNone) {
    return options.multi_tenant ? shared.On(options.listen_fd) : ServeStoreOn(options.listen_fd);
  }
  return options.multi_tenant ? shared.At(options.host, options.port)
                              : ServeStore(options.host, options.port);
}

// Returns whether the agent serves the store at that port, and so sees which workers wait there.
bool IsOfAgent(uint16_t port) {
  const char* serves = getenv("TORCHELASTIC_USE_AGENT_STORE");
  const char* agents = getenv("MASTER_PORT");
  return serves != nullptr && std::string_view(serves) == "True" && agents != nullptr &&
         agents == std::to_string(port);
}

// Returns whether the server can be reached as other hosts reach it. Ranks that meet in the store
// take the address of such a connection as their own.
bool HasOutsideAddress(const TcpStoreOptions& options) {
  if (options.listen_fd != Fd::kNone) return false;
  const auto addresses = SocketAddress::Resolve(options.host, 0);
  return addresses && std::ranges::none_of(*addresses, &SocketAddress::is_loopback) &&
         IsThisHost(*addresses);
}

Result<State> Open(const TcpStoreOptions& options) {
  if (auto ok = Check(options); !ok) return std::move(ok).error();
  TimePoint deadline = store::DeadlineAfter(options.timeout);
  State state(new StoreState{
      .timeout = CheckedTimeout(options.timeout), .name = options.host, .port = options.port});
  std::string host = options.host;
  if (options.is_server) {
    auto own = Serve(options);
    if (!own) return std::move(own).error();
    if (!HasOutsideAddress(options)) host = own->host;
    state->server = std::move(own->server);
    state->port = state->server->port();
  }
  auto store = Connect(host, state->port, options.timeout);
  if (!store) return std::move(store).error();
  if (auto met = MeetWorkers(**store, options, deadline); !met) return std::move(met).error();
  state->store = std::move(*store);
  if (IsOfAgent(state->port)) {
    state->use = std::make_unique<LibraryUse>(StatusPage::OfThisProcess());
  }
  return state;
}

}  // namespace
}  // namespace comm

TcpStore::TcpStore(const TcpStoreOptions& options)
    : Store(comm::UnwrapStore(comm::Open(options))) {}
TcpStore::~TcpStore() = default;

uint16_t TcpStore::port() const { return state_->port; }

const std::string& TcpStore::host() const { return state_->name; }

bool TcpStore::is_server() const { return state_->server != nullptr; }

}  // namespace rankrun
