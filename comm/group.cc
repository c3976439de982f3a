#include "comm/group.h"

#include <algorithm>
#include <utility>

#include "comm/post_mortem.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// How long a rank whose operation timed out waits for the others to say that
// theirs did too. Ranks enter an operation, and so time out, a little apart.
constexpr milliseconds kNotesGrace{1000};

// How long a rank that lost a connection leaves it to others to say why. One
// whose operation timed out has closed its connections a moment before it can.
constexpr milliseconds kFirstFailurePatience{20};

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

}  // namespace

milliseconds Bounded(milliseconds timeout) {
  return std::min<milliseconds>(timeout, std::chrono::hours(24 * 365));
}

Group::Group(Identity identity, std::unique_ptr<store::Store> store,
             std::unique_ptr<StoreBarrier> barrier, std::unique_ptr<Backend> backend)
    : identity_(std::move(identity)),
      store_(std::move(store)),
      barrier_(std::move(barrier)),
      backend_(std::move(backend)) {}

GroupState Group::state() const {
  std::lock_guard lock(mutex_);
  return broken_reason_.empty() ? GroupState::kOk : GroupState::kBroken;
}

std::string Group::broken_reason() const {
  std::lock_guard lock(mutex_);
  return broken_reason_;
}

Result<void> Group::AllReduce(const Tensor& tensor, ReduceOp op, Timeout timeout) {
  const Operation operation{
      .kind = Operation::Kind::kAllReduce, .count = tensor.count, .dtype = tensor.dtype, .op = op};
  if (tensor.data == nullptr && tensor.count > 0) return Invalid("AllReduce: tensor has no data");
  return Run(operation, timeout, [&](const Call& call) -> Result<void> {
    if (tensor.count == 0) return {};
    return backend_->AllReduce(tensor, op, call);
  });
}

Result<void> Group::Broadcast(const Tensor& tensor, int source, Timeout timeout) {
  const Operation operation{.kind = Operation::Kind::kBroadcast,
                            .count = tensor.count,
                            .dtype = tensor.dtype,
                            .source = source};
  if (tensor.data == nullptr && tensor.count > 0) return Invalid("Broadcast: tensor has no data");
  if (source < 0 || source >= world_size()) {
    return Invalid("Broadcast: source is rank " + std::to_string(source) + ": want 0.." +
                   std::to_string(world_size() - 1));
  }
  return Run(operation, timeout, [&](const Call& call) -> Result<void> {
    if (tensor.count == 0) return {};
    return backend_->Broadcast(tensor, source, call);
  });
}

Result<void> Group::Barrier(Timeout timeout) {
  return Run({.kind = Operation::Kind::kBarrier}, timeout,
             [&](const Call& call) { return backend_->Barrier(call); });
}

Result<void> Group::MonitoredBarrier(Timeout timeout) {
  std::lock_guard lock(mutex_);
  const Result<milliseconds> limit = Effective(timeout);
  if (!limit) return limit.error();
  const std::string what = "MonitoredBarrier #" + std::to_string(monitored_barriers_ + 1) + Place();
  if (!broken_reason_.empty()) {
    return Error{ErrorCode::kSystem, what + ": the process group is broken: " + broken_reason_};
  }
  monitored_barriers_ += 1;
  if (auto ok = barrier_->Pass(*limit); !ok) return std::move(ok).error().In(what);
  return {};
}

Result<void> Group::Run(Operation operation, Timeout timeout, const Body& body) {
  std::lock_guard lock(mutex_);
  const Result<milliseconds> limit = Effective(timeout);
  if (!limit) return limit.error();
  operation.number = operations_ + 1;
  if (!broken_reason_.empty()) {
    return Error{ErrorCode::kSystem, Describe(operation) + Place() +
                                         ": the process group is broken: " + broken_reason_};
  }
  operations_ += 1;
  const Deadline deadline{.since = std::chrono::steady_clock::now(), .timeout = *limit};
  auto ok = body({.tag = Tag(operation), .timeout = *limit});
  if (ok) return {};
  return Break(Describe(operation), std::move(ok).error(), deadline)
      .In(Describe(operation) + Place());
}

Result<milliseconds> Group::Effective(Timeout timeout) const {
  const milliseconds wanted = timeout.value_or(identity_.timeout);
  if (wanted < milliseconds(1)) {
    return Invalid("timeout is " + std::to_string(wanted.count()) + " ms: want at least 1 ms");
  }
  return Bounded(wanted);
}

// Publishes what happened before it closes the connections, because the
// others look for it as soon as they lose theirs.
Error Group::Break(const std::string& operation, Error cause, const Deadline& deadline) {
  const bool timed_out = cause.code == ErrorCode::kTimeout;
  const milliseconds grace = std::min(deadline.timeout, kNotesGrace);
  // A rank that times out closes its connections, which may reach this one
  // just before its own time is up.
  const bool time_is_up =
      timed_out || std::chrono::steady_clock::now() + grace >= deadline.since + deadline.timeout;

  PostMortem post_mortem(*store_, identity_.key_prefix, global_rank(), world_size());
  post_mortem.Report(operation);
  const std::string first = post_mortem.FirstFailure(
      operation + ": " + cause.message, timed_out ? milliseconds(0) : kFirstFailurePatience);
  const std::string notes = time_is_up ? post_mortem.CompareNotes(grace) : "";
  if (!notes.empty()) cause.message += "; " + notes;
  if (!first.empty()) cause.message += "; first to fail was " + first;
  if (identity_.deaths.told()) cause.message += "; " + identity_.deaths.Word();
  broken_reason_ = operation + ": " + cause.message;
  backend_.reset();
  return cause;
}

std::string Group::Place() const {
  return " of the world process group, rank " + std::to_string(global_rank()) + " of " +
         std::to_string(world_size());
}

}  // namespace rankrun::comm
