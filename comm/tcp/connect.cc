#include "comm/tcp/connect.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/roll_call.h"
#include "comm/core/time_left.h"
#include "comm/tcp/acceptor.h"
#include "comm/tcp/agreement.h"
#include "comm/tcp/dialer.h"
#include "comm/tcp/handshake.h"
#include "comm/tcp/listener.h"
#include "comm/tcp/peer_address.h"
#include "comm/tcp/socket.h"
#include "comm/tcp/socket_table.h"

namespace rankrun::comm::tcp {
namespace {

using std::chrono::milliseconds;

// Interval of checks for the complaint of another rank.
constexpr milliseconds kComplaintEvery{20};

TimePoint Now() { return std::chrono::steady_clock::now(); }

std::optional<Error> DifferenceInInterfaces(const BackendConfig& config,
                                            const std::vector<PeerAddress>& addresses) {
  std::map<uint32_t, std::vector<int>> ranks;
  for (size_t rank = 0; rank < addresses.size(); ++rank) {
    ranks[addresses[rank].interfaces].push_back(config.global_ranks[rank]);
  }
  if (ranks.size() == 1) return std::nullopt;
  std::string text;
  for (const auto& [interfaces, members] : ranks) {
    if (!text.empty()) text += ", ";
    text += std::to_string(interfaces) + " on " + RanksInWords(members);
  }
  return Error{ErrorCode::kInvalid, "GLOO_SOCKET_IFNAME names different numbers of interfaces: " +
                                        text + ": want the same number on all ranks"};
}

KeyRing KeysOf(const BackendConfig& config, const std::vector<PeerAddress>& addresses) {
  std::vector<RankKey> keys;
  keys.reserve(addresses.size());
  for (const PeerAddress& address : addresses) keys.push_back(address.key);
  auto streams = static_cast<uint32_t>(addresses.front().streams() + 1);
  return KeyRing(config.key_prefix, std::move(keys), streams);
}

// Connects to lower ranks and accepts the connections of higher ranks, until
// this rank is connected to all of them.
class ConnectionLoop {
 public:
  // All arguments must outlive the object.
  ConnectionLoop(const BackendConfig& config, const Listeners& listeners,
                 const std::vector<PeerAddress>& addresses, Agreement& agreement);

  // Errors: the first complaint of any rank, or a death.
  Result<void> Run(TimePoint deadline);

  std::optional<Error> FindLoss();
  std::vector<PeerSockets> TakeSockets() { return table_.Take(); }

 private:
  void AddTargets(const Listeners& listeners, const std::vector<PeerAddress>& addresses);
  std::optional<Error> FindComplaint();
  Result<void> Step(TimePoint until);
  Error Timeout() const;
  // Adds this rank's name to an error that other ranks will read.
  Error Own(Error error) const {
    return std::move(error).In(agreement_.NameOf(config_.group_rank));
  }

  const BackendConfig& config_;
  Agreement& agreement_;
  const KeyRing keys_;
  const DescriptorNeed need_;
  SocketTable table_;
  LossWatch losses_{table_};
  Acceptor acceptor_;
  Dialer dialer_;
  TimePoint next_complaint_ = Now() + kComplaintEvery;  // next time to look for one
};

ConnectionLoop::ConnectionLoop(const BackendConfig& config, const Listeners& listeners,
                               const std::vector<PeerAddress>& addresses, Agreement& agreement)
    : config_(config),
      agreement_(agreement),
      keys_(KeysOf(config, addresses)),
      need_(NeedOf(addresses.size(), listeners.sockets.size())),
      table_(config.world_size(), config.group_rank, listeners.sockets.size()),
      acceptor_({.listeners = listeners,
                 .keys = keys_,
                 .need = need_,
                 .own_rank = static_cast<uint32_t>(config.group_rank)},
                table_),
      dialer_(keys_, need_, table_) {
  AddTargets(listeners, addresses);
}

// Each rank begins with the rank below it, because otherwise all would begin
// with rank 0.
void ConnectionLoop::AddTargets(const Listeners& listeners,
                                const std::vector<PeerAddress>& addresses) {
  for (int peer = config_.group_rank - 1; peer >= 0; --peer) {
    const std::vector<SocketAddress>& theirs = addresses[static_cast<size_t>(peer)].listeners;
    for (uint32_t stream = 0; stream < keys_.streams(); ++stream) {
      size_t interface = stream == kControlStream ? 0 : stream - 1;
      dialer_.Add({.id = {.dialer = static_cast<uint32_t>(config_.group_rank),
                          .listener = static_cast<uint32_t>(peer),
                          .stream = stream},
                   .address = InScopeOf(listeners.addresses[interface], theirs[interface]),
                   .peer_name = agreement_.NameOf(peer)});
    }
  }
}

Result<void> ConnectionLoop::Run(TimePoint deadline) {
  while (!table_.is_complete()) {
    if (auto end = EndOf(config_)) return *std::move(end);
    if (auto complaint = FindComplaint()) return *std::move(complaint);
    if (Now() >= deadline) return agreement_.Fail(Own(Timeout()));
    if (auto ok = Step(config_.deaths.NextLook(deadline)); !ok) {
      return agreement_.Fail(Own(std::move(ok).error()));
    }
  }
  return {};
}

// Returns why the group can no longer be connected: a lost peer, or the complaint of
// another rank.
std::optional<Error> ConnectionLoop::FindComplaint() {
  if (auto loss = FindLoss()) return agreement_.Fail(*std::move(loss));
  if (Now() < next_complaint_) return std::nullopt;
  next_complaint_ = Now() + kComplaintEvery;
  return agreement_.ComplaintOfOthers();
}

std::optional<Error> ConnectionLoop::FindLoss() {
  auto loss = losses_.Check(Now());
  if (!loss) return std::nullopt;
  return Error{ErrorCode::kPeerLost, "lost " + agreement_.NameOf(loss->peer) + ": " + loss->why};
}

// Waits for events until `until` at most, and handles them.
Result<void> ConnectionLoop::Step(TimePoint until) {
  TimePoint now = Now();
  if (auto ok = dialer_.Start(now); !ok) return ok;
  std::vector<pollfd> entries;
  acceptor_.AddPollEntries(entries, now);
  const size_t accepting = entries.size();
  dialer_.AddPollEntries(entries);
  until = std::min({until, next_complaint_, acceptor_.NextDeadline(now), dialer_.NextDeadline()});
  auto timeout = std::max(std::chrono::ceil<milliseconds>(until - now), milliseconds(0));
  if (poll(entries.data(), entries.size(), static_cast<int>(timeout.count())) < 0) return {};
  std::span<const pollfd> events(entries);
  if (auto ok = acceptor_.Advance(events.first(accepting), Now()); !ok) return ok;
  return dialer_.Advance(events.subspan(accepting), Now());
}

Error ConnectionLoop::Timeout() const {
  std::vector<int> peers = table_.Incomplete();
  for (int& peer : peers) peer = config_.global_ranks[static_cast<size_t>(peer)];
  std::string text = "no connection with " + RanksInWords(peers) + " after " +
                     std::to_string(config_.timeout.count()) + " ms";
  if (!dialer_.last_failure().empty()) text += "; " + dialer_.last_failure();
  return {ErrorCode::kTimeout, text};
}

Result<std::vector<PeerSockets>> Connect(const BackendConfig& config, TimePoint deadline) {
  Agreement agreement(config, deadline);
  const bool is_alone = config.world_size() == 1;
  auto listeners = Listen(config);
  if (!listeners) {
    Error error = std::move(listeners).error();
    if (is_alone) return error;
    return agreement.Fail(std::move(error).In(agreement.NameOf(config.group_rank)));
  }
  if (is_alone) return std::vector<PeerSockets>(1);
  auto addresses = agreement.Exchange({.key = NewRankKey(),
                                       .interfaces = listeners->interfaces,
                                       .listeners = listeners->addresses});
  if (!addresses) return std::move(addresses).error();
  if (auto difference = DifferenceInInterfaces(config, *addresses)) {
    return agreement.Fail(*std::move(difference));
  }
  ConnectionLoop loop(config, *listeners, *addresses, agreement);
  if (auto ok = loop.Run(deadline); !ok) return std::move(ok).error();
  auto confirmed = agreement.Confirm([&] { return loop.FindLoss(); });
  if (!confirmed) return std::move(confirmed).error();
  return loop.TakeSockets();
}

}  // namespace

Result<std::vector<PeerSockets>> ConnectAll(const BackendConfig& config) {
  const TimePoint began = Now();
  auto sockets = Connect(config, began + Bounded(config.timeout));
  if (!sockets && config.deaths.has_death()) return config.deaths.ErrorSince(began);
  return sockets;
}

}  // namespace rankrun::comm::tcp
