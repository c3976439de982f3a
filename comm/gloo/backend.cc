#include "comm/gloo/backend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/process/signals_blocked.h"
#include "base/roll_call.h"
#include "comm/core/calls.h"
#include "comm/gloo/error_text.h"
#include "comm/gloo/without_sigpipe.h"

namespace rankrun::comm::gloo {
namespace {

using std::chrono::milliseconds;

// Time that Destroy waits for receivers of messages that were sent as copies.
constexpr milliseconds kCopiesTaken{5000};

// Time that Destroy keeps the connections open for data that is not sent yet.
constexpr milliseconds kFlush{1000};

// Time to send the farewell of a failed group; short because peers may be
// stopped.
constexpr milliseconds kFarewell{10};

// Gloo completes no send before its receive starts, and waits between two steps
// anyway.
AlgorithmTable OnlyRings() {
  return {.all_reduce_doubling = 0,
          .all_reduce_doubling_of_two = 0,
          .all_reduce_halving = 0,
          .all_gather_direct = 0,
          .all_gather_bruck = 0,
          .all_to_all_direct = 0,
          .broadcast_tree = SIZE_MAX,
          .reduce_tree = 0};
}

}  // namespace

Result<std::unique_ptr<Backend>> GlooBackend::Create(const BackendConfig& config) {
  SetDefaultLogLevel(config.default_log_level);
  auto mesh = BuildMesh(config);
  if (!mesh) return std::move(mesh).error();
  try {
    return std::unique_ptr<Backend>(new GlooBackend(config, *std::move(mesh)));
  } catch (const std::system_error& error) {
    return SystemError("start a thread", error.code().value());
  }
}

GlooBackend::GlooBackend(const BackendConfig& config, Mesh mesh)
    : ScheduleBackend(config.group_rank, config.world_size(), OnlyRings()),
      global_ranks_(config.global_ranks),
      checks_all_calls_(config.checks_all_calls),
      context_(std::move(mesh.context)),
      control_(std::move(mesh.control)),
      failure_board_(config, *control_),
      monitor_(config, failure_board_, *control_, wake_event_),
      messages_(config, context_, *control_, failure_board_, wake_event_),
      exchange_(context_, monitor_) {
  const SignalsBlocked in_the_thread;
  monitor_thread_ = std::thread([this] { Monitor(); });
}

GlooBackend::~GlooBackend() {
  const WithoutSigpipe without_sigpipe;
  messages_.WaitForCopies(kCopiesTaken);
  leaving_ = true;
  wake_event_.Set();
  monitor_thread_.join();
  messages_.Stop({ErrorCode::kCancelled, "the process group is destroyed"});
  if (ended_) return;
  failure_board_.SendFarewellOnLeaving();
  control_->Flush(kFlush);
}

Result<void> GlooBackend::Conclude(const Call& call) {
  auto why = failure_board_.Conclude(call.operation.number);
  if (!why) return {};
  End(*why, *why);
  return *std::move(why);
}

bool GlooBackend::Refuse(const Call& call, const std::string& reason) {
  Error why{ErrorCode::kSystem, OwnName() + " refused " + Describe(call.operation) + ": " + reason};
  failure_board_.PublishNote(why);
  End(why, why);
  return false;
}

void GlooBackend::Abort(const std::string& reason) {
  const Error why{ErrorCode::kCancelled, reason};
  const Error for_others{ErrorCode::kPeerLost, reason};
  End(why, for_others);
}

Result<std::unique_ptr<Transfer>> GlooBackend::StartSend(ConstBlock data, int destination,
                                                         const Envelope& envelope) {
  return messages_.Start({.is_send = true,
                          .data = const_cast<std::byte*>(data.data),  // only read
                          .bytes = data.bytes,
                          .envelope = envelope,
                          .peer = destination});
}

Result<std::unique_ptr<Transfer>> GlooBackend::StartRecv(Block data, std::optional<int> source,
                                                         const Envelope& envelope) {
  return messages_.Start({.is_send = false,
                          .data = data.data,
                          .bytes = data.bytes,
                          .envelope = envelope,
                          .peer = source});
}

Result<void> GlooBackend::RunSchedule(const Call& call, const Schedule& schedule,
                                      const Blocks& blocks, bool may_be_uneven) {
  const WithoutSigpipe without_sigpipe;
  std::optional<CollectiveAborted> ended;
  monitor_.Begin(call);
  try {
    if (checks_all_calls_) CheckCall(call);
    if (may_be_uneven) CheckSizes(call, schedule, blocks);
    exchange_.UseSlotOf(call.operation);
    RunSteps(schedule, blocks);
  } catch (const CollectiveAborted& thrown) {
    ended = thrown;
  } catch (const std::bad_alloc&) {
    ended = CollectiveAborted{.why = {ErrorCode::kExhausted, "no memory for it"}, .is_own = true};
  } catch (const std::exception& exception) {
    ended =
        CollectiveAborted{.why = {ErrorCode::kSystem, PlainText(exception.what())}, .is_own = true};
  }
  monitor_.End();
  if (!ended) return {};
  // Errors of messages and of other ranks name the call that failed.
  Error for_messages = ended->why;
  Error for_others = ended->why;
  if (ended->is_own) {
    for_messages = std::move(for_messages).In(Describe(call.operation));
    for_others = {ErrorCode::kPeerLost, OwnName() + ": " + for_messages.message};
  }
  End(for_messages, for_others);
  return ended->why;
}

void GlooBackend::RunSteps(const Schedule& schedule, const Blocks& blocks) {
  auto ok = executor_.Run(schedule, blocks);
  RANKRUN_CHECK(ok, "GlooExchange throws its errors");
}

void GlooBackend::CheckSizes(const Call& call, const Schedule& schedule, const Blocks& blocks) {
  auto difference = exchange_.CompareSizes(schedule, blocks, call.operation, global_ranks_);
  if (!difference) return;
  Error why{ErrorCode::kMismatch, *difference};
  failure_board_.PublishNote(why);
  throw CollectiveAborted{.why = why};
}

// Exchanges the calls of all ranks before any data moves.
void GlooBackend::CheckCall(const Call& call) {
  struct CallRecord {
    uint64_t fingerprint;
    std::array<char, 120> description;
  };
  std::vector<CallRecord> records(global_ranks_.size());
  CallRecord own{.fingerprint = call.fingerprint, .description = {}};
  std::string text = Describe(call.operation);
  std::memcpy(own.description.data(), text.data(),
              std::min(text.size(), own.description.size() - 1));
  Blocks blocks{.inputs = {{reinterpret_cast<std::byte*>(&own), sizeof own}}};
  for (CallRecord& record : records) {
    blocks.outputs.push_back({reinterpret_cast<std::byte*>(&record), sizeof record});
  }
  exchange_.UseSlot(SlotOf(SlotUse::kCheck, call.operation.number));
  RunSteps(AllGatherPairwise({rank(), ranks()}), blocks);
  bool same = std::all_of(records.begin(), records.end(), [&](const CallRecord& record) {
    return record.fingerprint == own.fingerprint;
  });
  if (same) return;
  CallsByRank calls;
  for (const CallRecord& record : records) calls.emplace_back(record.description.data());
  Error why{ErrorCode::kMismatch, DescribeCalls(calls, global_ranks_)};
  failure_board_.PublishNote(why);
  throw CollectiveAborted{.why = why};
}

std::string GlooBackend::OwnName() const {
  return RanksInWords({global_ranks_[static_cast<size_t>(rank())]});
}

// Closes all connections for good. A wait that times out is Gloo's only way to
// do so that also wakes waiting threads.
void GlooBackend::Disconnect() {
  char unused = 0;
  auto buffer = context_->createUnboundBuffer(&unused, sizeof unused);
  try {
    buffer->waitRecv(milliseconds(1));
  } catch (const std::exception&) {
    // The expected time-out.
  }
}

void GlooBackend::End(const Error& why, const Error& for_others) {
  const WithoutSigpipe without_sigpipe;
  // A second caller waits here, because its own caller frees the blocks
  // afterwards.
  MutexLock lock(end_mutex_);
  if (std::exchange(ended_, true)) return;
  monitor_.Stop(why);
  messages_.Stop(why);
  failure_board_.SendFarewell(for_others);
  control_->Flush(kFarewell);  // data may be queued before the farewell
  Disconnect();
}

// Body of the monitor thread.
void GlooBackend::Monitor() {
  while (!leaving_) {
    TimePoint now = std::chrono::steady_clock::now();
    TimePoint next = std::min(monitor_.Check(now), messages_.Poll(now));
    if (next <= now) {
      std::this_thread::yield();
    } else {
      wake_event_.SleepUntil(next);
    }
  }
}

}  // namespace rankrun::comm::gloo
