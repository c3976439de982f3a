#include "comm/group.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_page.h"
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

}  // namespace

milliseconds Bounded(milliseconds timeout) {
  return std::min<milliseconds>(timeout, std::chrono::hours(24 * 365));
}

Group::Group(GroupIdentity identity, std::unique_ptr<store::Store> store,
             std::unique_ptr<StoreBarrier> barrier, std::unique_ptr<Backend> backend)
    : identity_(std::move(identity)),
      store_(std::move(store)),
      barrier_(std::move(barrier)),
      backend_(std::move(backend)),
      messages_(std::make_unique<Messages>(
          *backend_, identity_.group_rank,
          [this](int rank) { return identity_.global_ranks[static_cast<size_t>(rank)]; },
          [this](const Messages::Message& message, Error error) {
            return MessageFailed(message, std::move(error));
          })),
      activity_(StatusPage::OfThisProcess(), ShownName(identity_), identity_.world_size()),
      queue_([this] { return messages_->Progress(); }) {}

Group::Group(GroupIdentity identity)
    : identity_(std::move(identity)),
      activity_(nullptr, ShownName(identity_), 0),
      queue_([] { return false; }) {}

Group::~Group() { queue_.Stop(); }

GroupState Group::state() const { return broken_.load() ? GroupState::kBroken : GroupState::kOk; }

std::string Group::broken_reason() const {
  std::lock_guard lock(state_mutex_);
  return broken_reason_;
}

Result<void> Group::MonitoredBarrier(Timeout timeout, bool wait_all_ranks) {
  if (!is_member()) return Uninvolved("MonitoredBarrier");
  std::lock_guard lock(mutex_);
  const Result<milliseconds> limit = Effective(timeout);
  if (!limit) return Error(limit.error()).In("MonitoredBarrier");
  const std::string what = "MonitoredBarrier #" + std::to_string(monitored_barriers_ + 1) + Place();
  if (broken_.load()) return Broken(what);
  monitored_barriers_ += 1;
  if (auto ok = barrier_->Pass(*limit, wait_all_ranks); !ok) return std::move(ok).error().In(what);
  return {};
}

Result<void> Group::Uninvolved(const char* what) const {
  const std::string message = std::string(what) + Place() + ": does nothing here, as rank " +
                              std::to_string(identity_.global_rank) + " is no member of it";
  if (identity_.is_strict) return Error{ErrorCode::kInvalid, message};
  LogWarn(message);
  return {};
}

Result<milliseconds> Group::Effective(Timeout timeout) const {
  const milliseconds wanted = timeout.value_or(identity_.timeout);
  if (wanted < milliseconds(1)) {
    return Error{ErrorCode::kInvalid,
                 "timeout is " + std::to_string(wanted.count()) + " ms: want at least 1 ms"};
  }
  return Bounded(wanted);
}

Error Group::Broken(const std::string& what) const {
  return Error{ErrorCode::kSystem, what + ": the process group is broken: " + broken_reason()};
}

// Publishes what happened before it closes the connections, because the
// others look for it as soon as they lose theirs.
Error Group::Break(const std::string& operation, Error cause, const Deadline& deadline) {
  if (broken_.load()) {  // by a message meanwhile, or by a collective
    cause.message += "; first to fail here was " + broken_reason();
    return cause;
  }
  const bool timed_out = cause.code == ErrorCode::kTimeout;
  const milliseconds grace = std::min(deadline.timeout, kNotesGrace);
  // A rank that times out closes its connections, which may reach this one
  // just before its own time is up.
  const bool time_is_up =
      timed_out || std::chrono::steady_clock::now() + grace >= deadline.since + deadline.timeout;

  PostMortem post_mortem(*store_, identity_.key_prefix, identity_.group_rank,
                         identity_.global_ranks);
  post_mortem.Report(operation);
  const std::string first = post_mortem.FirstFailure(
      operation + ": " + cause.message, timed_out ? milliseconds(0) : kFirstFailurePatience);
  const std::string notes = time_is_up ? post_mortem.CompareNotes(grace) : "";
  if (!notes.empty()) cause.message += "; " + notes;
  if (!first.empty()) cause.message += "; first to fail was " + first;
  const std::string death = identity_.deaths.Word();
  if (cause.message.find(death) == std::string::npos) cause.message += "; " + death;
  {
    std::lock_guard lock(state_mutex_);
    broken_reason_ = operation + ": " + cause.message;
    broken_.store(true);
  }
  backend_->Abort(operation + ": " + cause.message);
  return cause;
}

const std::string& ShownName(const GroupIdentity& identity) {
  return identity.description.empty() ? identity.name : identity.description;
}

std::string PlaceIn(const GroupIdentity& identity) {
  const std::string name = identity.is_world() ? "the world process group"
                                               : "process group \"" + ShownName(identity) + "\"";
  if (identity.group_rank < 0) return name;
  return name + ", rank " + std::to_string(identity.group_rank) + " of " +
         std::to_string(identity.world_size());
}

}  // namespace rankrun::comm
