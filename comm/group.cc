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
// theirs did too, and no longer than a quarter of the time-out. Ranks enter an
// operation, and so time out, a little apart.
constexpr milliseconds kNotesGrace{1000};

// How long a rank that lost a connection leaves it to others to say why. One
// whose operation timed out has closed its connections a moment before it can.
constexpr milliseconds kFirstFailurePatience{20};

// How long to try for a connection to the store for that, and to wait for each
// reply. It may be what hangs; if it is dead, that shows at once.
constexpr milliseconds kStorePatience{1000};

// Of the error that was first: this rank's own may be the same, or quote it, or
// be quoted by it. Two operations time out in the same words.
bool IsNews(const std::string& first, const std::string& own_operation, const Error& own) {
  const std::string all = own_operation + ": " + own.message;
  const std::string& words = own.code == ErrorCode::kTimeout ? all : own.message;
  return all.find(first) == std::string::npos && first.find(words) == std::string::npos;
}

}  // namespace

milliseconds Bounded(milliseconds timeout) {
  return std::clamp<milliseconds>(timeout, milliseconds(0), std::chrono::hours(24 * 365));
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
          identity_.deaths,
          [this](const Messages::Message& message, Error error) {
            return MessageFailed(message, std::move(error));
          })),
      activity_(StatusPage::OfThisProcess(), ShownName(identity_), identity_.world_size()),
      mover_([this] { return messages_->Progress(); }) {}

Group::Group(GroupIdentity identity)
    : identity_(std::move(identity)),
      activity_(nullptr, ShownName(identity_), 0),
      mover_([] { return false; }) {}

Group::~Group() {
  queue_.Stop();
  mover_.Stop();
}

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
  return Error{ErrorCode::kSystem,
               what + ": the process group is broken: " + WithDeath(broken_reason())};
}

// Told perhaps only after what it led to.
std::string Group::WithDeath(std::string text) const {
  const std::string death = identity_.deaths.Word();
  if (text.find(death) == std::string::npos) text += "; " + death;
  return text;
}

Error Group::Failed(const Operation& operation, Error error, milliseconds timeout) {
  const std::string what = Describe(operation);
  if (error.code != ErrorCode::kInvalid) {
    error = Break(what, std::move(error), timeout);
    messages_->EndOwn();
  }
  return std::move(error).In(what + Place());
}

// Publishes what happened before it closes the connections, because the
// others look for it as soon as they lose theirs. Whoever else fails meanwhile
// waits, as no message may go before the backend has let go of its memory.
Error Group::Break(const std::string& operation, Error cause, milliseconds timeout) {
  std::lock_guard one_at_a_time(break_mutex_);
  if (broken_.load()) {  // by a message meanwhile, or by a collective
    const std::string first = broken_reason();
    if (IsNews(first, operation, cause)) {
      cause.message += "; first to fail here was " + first;
    }
    return cause;
  }
  if (!identity_.deaths.told()) Explain(operation, cause, timeout);
  cause.message = WithDeath(std::move(cause.message));
  const std::string reason = operation + ": " + cause.message;
  backend_->Abort(RanksInWords({identity_.global_rank}) + ": " + reason);
  std::lock_guard lock(state_mutex_);
  broken_reason_ = reason;
  broken_.store(true);
  return cause;
}

// Adds to `cause` what the other ranks say, and tells them of it.
void Group::Explain(const std::string& operation, Error& cause, milliseconds timeout) const {
  // Not `store_`, in which another thread may wait for as long as its time-out.
  const auto store = store_->CloneWith(kStorePatience, kStorePatience);
  if (!store) return;
  PostMortem post_mortem(**store, identity_.key_prefix, identity_.group_rank,
                         identity_.global_ranks);
  post_mortem.Report(operation);
  const Error own = cause;
  const bool timed_out = cause.code == ErrorCode::kTimeout;
  const bool may_be_explained = !timed_out && cause.code != ErrorCode::kMismatch;
  const std::string first = post_mortem.FirstFailure(
      operation + ": " + own.message, may_be_explained ? kFirstFailurePatience : milliseconds(0));
  if (timed_out) {
    const milliseconds grace = std::min(timeout / 4, kNotesGrace);
    const std::string notes = post_mortem.CompareNotes(grace);
    if (!notes.empty()) cause.message += "; " + notes;
  }
  // "rank 1: AllReduce #2 (...): lost rank 2".
  const std::string of_first = first.substr(std::min(first.size(), first.find(": ") + 2));
  if (IsNews(of_first, operation, own)) cause.message += "; first to fail was " + first;
}

const std::string& ShownName(const GroupIdentity& identity) {
  return identity.description.empty() ? identity.name : identity.description;
}

std::string PlaceIn(const GroupIdentity& identity) {
  const std::string name = identity.is_world() ? "the world process group"
                                               : "process group \"" + ShownName(identity) + "\"";
  if (identity.group_rank < 0) return name;
  const std::string place =
      std::to_string(identity.group_rank) + " of " + std::to_string(identity.world_size());
  if (identity.is_world()) return name + ", rank " + place;
  return name + ", global rank " + std::to_string(identity.global_rank) + " (" + place + ")";
}

}  // namespace rankrun::comm
