#include "comm/stream/backend.h"

#include <sched.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/clock.h"
#include "comm/core/pair_sizes.h"

namespace rankrun::comm::stream {
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

int Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

StreamBackend::Streams::Streams(std::vector<PeerConnections> peers) {
  for (PeerConnections& peer : peers) {
    control.push_back(std::move(peer.control));
    std::vector<Stream>& streams = data.emplace_back();
    for (auto& connection : peer.data) streams.emplace_back(std::move(connection));
  }
}

StreamBackend::StreamBackend(const BackendConfig& config, std::vector<PeerConnections> peers,
                             int ranks_here, std::unique_ptr<OwnCollectives> own)
    : StreamBackend(config, ranks_here > Processors() ? kCrowdedPatience : kEagerPatience,
                    Streams(std::move(peers)), std::move(own)) {}

StreamBackend::StreamBackend(const BackendConfig& config, const Patience& patience, Streams streams,
                             std::unique_ptr<OwnCollectives> own)
    : ScheduleBackend(config.group_rank, config.world_size(), config.algorithms),
      checks_all_calls_(config.checks_all_calls),
      patience_(patience),
      control_(config, std::move(streams.control), messages_),
      messages_(config, control_, patience_),
      exchange_(config, std::move(streams.data), control_, patience_),
      global_ranks_(config.global_ranks),
      deaths_(config.deaths),
      own_(std::move(own)) {}

StreamBackend::~StreamBackend() {
  messages_.Stop({ErrorCode::kCancelled, "the process group is destroyed"});
  MutexLock lock(control_.mutex());
  if (control_.ended()) return;
  control_.SendLeave();
  control_.Flush(kFlush);
}

// A peer with another number of bytes is found by the headers of its frames.
Result<void> StreamBackend::RunSchedule(const Call& call, const Schedule& schedule,
                                        const Blocks& blocks, bool) {
  if (auto ok = Announce(call); !ok) return ok;
  return Execute(call, schedule, blocks);
}

Result<void> StreamBackend::Announce(const Call& call) {
  if (auto ok = control_.Enter(call.operation, call.fingerprint); !ok) return ok;
  exchange_.Begin(call);
  if (!checks_all_calls_) return {};
  return Ended(call, exchange_.CompareAllCalls());
}

Result<void> StreamBackend::RunPart(const Call& call, const Schedule& schedule,
                                    const Blocks& blocks) {
  exchange_.Begin(call);
  return Execute(call, schedule, blocks);
}

Result<void> StreamBackend::Execute(const Call& call, const Schedule& schedule,
                                    const Blocks& blocks) {
  try {
    return Ended(call, executor_.Run(schedule, blocks));
  } catch (const std::bad_alloc&) {
    return Ended(call, Error{ErrorCode::kExhausted, "no memory for it"});
  }
}

Result<void> StreamBackend::RunOwn(const Collective& collective, const Call& call) {
  Operation operation = call.operation;
  operation.by_backend = true;  // so that ranks that decide otherwise find a difference
  const Call compared{.operation = operation, .timeout = call.timeout};
  auto same = comm::CompareCalls(
      operation, SizesOf(collective, rank(), ranks()), rank(), global_ranks_,
      [&](const Collective& without_data) { return ScheduleBackend::Run(without_data, compared); });
  if (!same) return Ended(call, same);
  const TimePoint began = MonotonicClock().Now();
  std::optional<Error> end;
  auto is_cancelled = [&] {
    if (!end) end = FindFailureIn(call.operation.number, began);
    if (!end && deaths_.has_death()) end = deaths_.ErrorSince(began);
    if (!end && MonotonicClock().Now() >= exchange_.deadline()) {
      end = Error{ErrorCode::kTimeout, "timed out after " + std::to_string(call.timeout.count()) +
                                           " ms in a collective of the backend's own"};
    }
    return end.has_value();
  };
  Result<void> ran = [&]() -> Result<void> {
    MutexLock lock(own_mutex_);
    if (own_ended_) return Error{ErrorCode::kCancelled, "the group has ended"};
    return own_->Run(collective, call, is_cancelled);
  }();
  if (ran) return {};
  if (is_cancelled()) return Ended(call, *std::move(end));
  return EndedHere(call, std::move(ran).error());
}

std::optional<Error> StreamBackend::FindFailureIn(uint64_t call, TimePoint since) {
  control_.TryMove();
  if (!control_.alarmed()) return std::nullopt;
  MutexLock lock(control_.mutex());
  if (auto end = control_.FindEnd(since, call)) return end;
  return control_.FindSilentLoss();
}

Result<void> StreamBackend::Conclude(const Call& call) {
  auto ok = control_.Conclude(exchange_.deadline());
  if (ok) [[likely]]
    return ok;
  auto why = exchange_.FindEnd();  // with the calls of all ranks, if these differ
  return Ended(call, why ? *std::move(why) : ok.error());
}

Result<void> StreamBackend::Ended(const Call& call, Result<void> result) {
  if (result) return result;
  const Error& why = result.error();
  bool is_own = why.code == ErrorCode::kTimeout || why.code == ErrorCode::kExhausted;
  if (is_own) return EndedHere(call, why);
  End(why, why);
  return result;
}

Error StreamBackend::EndedHere(const Call& call, Error why) {
  // Errors of messages and of other ranks name the call that failed.
  Error named = Error(why).In(Describe(call.operation));
  End(named, {ErrorCode::kPeerLost, control_.NameOf(rank()) + ": " + named.message});
  return why;
}

void StreamBackend::Fail(const Error& error) { End(error, error); }

bool StreamBackend::Refuse(const Call& call, const std::string& reason) {
  Error why{ErrorCode::kSystem,
            control_.NameOf(rank()) + " refused " + Describe(call.operation) + ": " + reason};
  End(why, why);
  return false;
}

void StreamBackend::Abort(const std::string& reason) {
  End({ErrorCode::kCancelled, reason}, {ErrorCode::kPeerLost, reason});
}

void StreamBackend::End(const Error& why, const Error& for_others) {
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
  MutexLock lock(own_mutex_);
  own_ended_ = true;
}

int CountRanksHere(const BackendConfig& config) {
  if (config.hosts.empty()) return config.world_size();
  const std::string& own = config.hosts[static_cast<size_t>(config.group_rank)];
  return static_cast<int>(std::count(config.hosts.begin(), config.hosts.end(), own));
}

}  // namespace rankrun::comm::stream
