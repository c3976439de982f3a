#include "comm/tcp/backend.h"

#include <sched.h>

#include <new>
#include <utility>

#include "base/net/socket_address.h"

namespace rankrun::comm::tcp {
namespace {

using std::chrono::milliseconds;

// Time that Destroy waits until the kernel has taken all data.
constexpr milliseconds kFlush{1000};

// Time to send the farewell of a failed group; short because peers may be
// stopped.
constexpr milliseconds kFarewell{10};

// A poll that finds nothing takes about 0.3 us.
constexpr Patience kEagerPatience{.polls = 200, .yields = 64};
constexpr Patience kCrowdedPatience{.polls = 0, .yields = 64};

// Returns whether the peer at the other end is on this host.
bool IsOnThisHost(int socket) {
  auto local = SocketAddress::LocalOf(socket);
  auto peer = SocketAddress::PeerOf(socket);
  return local && peer && local->Bytes() == peer->Bytes();
}

int Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

Result<std::unique_ptr<Backend>> TcpBackend::Create(const BackendConfig& config) {
  auto backend = CreateTcp(config);
  if (!backend) return std::move(backend).error();
  return std::unique_ptr<Backend>(*std::move(backend));
}

Result<std::unique_ptr<TcpBackend>> TcpBackend::CreateTcp(const BackendConfig& config) {
  auto peers = ConnectAll(config);
  if (!peers) return std::move(peers).error();
  Sockets sockets;
  int ranks_here = 1;
  for (PeerSockets& peer : *peers) {
    if (peer.control && IsOnThisHost(peer.control.get())) ranks_here += 1;
    sockets.control.push_back(std::move(peer.control));
    std::vector<Stream>& streams = sockets.data.emplace_back();
    for (Fd& socket : peer.data) streams.emplace_back(std::move(socket));
  }
  const Patience& patience = ranks_here > Processors() ? kCrowdedPatience : kEagerPatience;
  return std::unique_ptr<TcpBackend>(new TcpBackend(config, patience, std::move(sockets)));
}

TcpBackend::TcpBackend(const BackendConfig& config, const Patience& patience, Sockets sockets)
    : ScheduleBackend(config.group_rank, config.world_size(), config.algorithms),
      checks_all_calls_(config.checks_all_calls),
      patience_(patience),
      control_(config, std::move(sockets.control), messages_),
      messages_(config, control_, patience_),
      exchange_(config, std::move(sockets.data), control_, patience_) {}

TcpBackend::~TcpBackend() {
  messages_.Stop({ErrorCode::kCancelled, "the process group is destroyed"});
  MutexLock lock(control_.mutex());
  if (control_.ended()) return;
  control_.SendLeave();
  control_.Flush(kFlush);
}

// A peer with another number of bytes is found by the headers of its frames.
Result<void> TcpBackend::Run(const Call& call, const Schedule& schedule, const Blocks& blocks,
                             bool) {
  if (auto ok = Announce(call); !ok) return ok;
  return RunSchedule(call, schedule, blocks);
}

Result<void> TcpBackend::Announce(const Call& call) {
  if (auto ok = BeginCall(call); !ok || !checks_all_calls_) return ok;
  return Ended(call, exchange_.CompareAllCalls());
}

Result<void> TcpBackend::RunSchedule(const Call& call, const Schedule& schedule,
                                     const Blocks& blocks) {
  if (auto ok = BeginCall(call); !ok) return ok;
  try {
    return Ended(call, executor_.Run(schedule, blocks));
  } catch (const std::bad_alloc&) {
    return Ended(call, Error{ErrorCode::kExhausted, "no memory for it"});
  }
}

std::optional<Error> TcpBackend::Look(TimePoint wait_began) {
  control_.TryMove();
  if (!control_.alarmed()) return std::nullopt;
  MutexLock lock(control_.mutex());
  if (auto end = control_.FindEnd(wait_began)) return end;
  return control_.FindSilentLoss();
}

Result<void> TcpBackend::BeginCall(const Call& call) {
  {
    MutexLock lock(control_.mutex());
    if (control_.ended()) return *control_.ended();
  }
  exchange_.Begin(call);
  return {};
}

Result<void> TcpBackend::Ended(const Call& call, Result<void> result) {
  if (result) return result;
  const Error& why = result.error();
  bool is_own = why.code == ErrorCode::kTimeout || why.code == ErrorCode::kExhausted;
  if (!is_own) {
    End(why, why);
    return result;
  }
  // Errors of messages and of other ranks name the call that failed.
  Error named = Error(why).In(Describe(call.operation));
  End(named, {ErrorCode::kPeerLost, control_.NameOf(rank()) + ": " + named.message});
  return result;
}

void TcpBackend::Fail(const Error& error) { End(error, error); }

bool TcpBackend::Refuse(const Call& call, const std::string& reason) {
  Error why{ErrorCode::kSystem,
            control_.NameOf(rank()) + " refused " + Describe(call.operation) + ": " + reason};
  End(why, why);
  return false;
}

void TcpBackend::Abort(const std::string& reason) {
  End({ErrorCode::kCancelled, reason}, {ErrorCode::kPeerLost, reason});
}

void TcpBackend::End(const Error& why, const Error& for_others) {
  Error end = why;
  // kTimeout of a transfer would mean that it continues.
  if (end.code == ErrorCode::kTimeout) end.code = ErrorCode::kCancelled;
  {
    MutexLock lock(control_.mutex());
    if (!control_.End(end, for_others)) return;
  }
  messages_.Stop(end);
  {
    MutexLock lock(control_.mutex());
    control_.Flush(kFarewell);
    control_.Close();
  }
  exchange_.Close();
}

}  // namespace rankrun::comm::tcp
