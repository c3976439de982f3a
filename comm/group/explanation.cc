#include "comm/group/explanation.h"

#include <algorithm>

#include "base/format.h"
#include "base/roll_call.h"
#include "comm/group/post_mortem.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// Maximum time that a rank waits after its time-out for the other ranks to
// report theirs; also at most a quarter of the time-out. Ranks enter an
// operation, and so time out, at slightly different times.
constexpr milliseconds kReportsGrace{1000};

// Time that a rank with a lost connection waits for another rank's first
// failure. A rank that timed out closes its connections shortly before it can
// publish that.
constexpr milliseconds kFirstFailurePatience{20};

// Names the rank that serves a store without an answer: it is stopped, and the
// cause, while the rank that was waited for may be sound.
std::string SilentServer(const GroupIdentity& identity) {
  if (!identity.store_rank || *identity.store_rank == identity.global_rank) return "";
  return "; no answer from " + RanksInWords({*identity.store_rank}) +
         ", which serves the store, in " + FormatSeconds(kStorePatience);
}

// Replaces the cause on a rank that has begun the call after its first failure. Returns whether it
// did.
bool ReplaceIfLate(const FailedCall& call, const TimedText& first, Error& cause) {
  const std::string in_call = ": " + call.operation + ": ";  // as in "rank 0: Barrier #1: ..."
  const size_t rank_end = first.text.find(": ");
  if (rank_end == first.text.npos) return false;
  const std::string late = BeforeThisRank(first, *call.came);
  if (late.empty() || first.text.compare(rank_end, in_call.size(), in_call) != 0) return false;
  cause.message =
      late + first.text.substr(0, rank_end) + ": " + first.text.substr(rank_end + in_call.size());
  return true;
}

}  // namespace

bool AddsInformation(const std::string& first, const std::string& own_operation, const Error& own) {
  std::string all = own_operation + ": " + own.message;
  const std::string& words = own.code == ErrorCode::kTimeout ? all : own.message;
  return all.find(first) == std::string::npos && first.find(words) == std::string::npos;
}

void Explain(const GroupIdentity& identity, store::Store& below, const FailedCall& call,
             const std::atomic<bool>& is_ending, Error& cause) {
  // A new connection, because another thread may be in a long wait on `below`.
  auto store = below.CloneWith(kStorePatience, kStorePatience);
  if (!store) {
    if (store.error().code == ErrorCode::kTimeout) cause.message += SilentServer(identity);
    return;
  }
  PostMortem post_mortem(**store, identity.key_prefix, identity.group_rank, identity.global_ranks);
  post_mortem.Report(call.operation);
  Error own = cause;
  bool timed_out = cause.code == ErrorCode::kTimeout;
  bool may_be_explained = !timed_out && cause.code != ErrorCode::kMismatch;
  auto first = post_mortem.FirstFailure(call.operation + ": " + own.message,
                                        may_be_explained ? kFirstFailurePatience : milliseconds(0));
  if (first && call.came && ReplaceIfLate(call, *first, cause)) return;
  if (timed_out) {
    milliseconds grace = std::min(call.timeout / 4, kReportsGrace);
    std::string reports = post_mortem.CompareReports(grace, is_ending);
    if (!reports.empty()) cause.message += "; " + reports;
  }
  if (!first) return;
  // Cut off the rank of "rank 1: AllReduce #2 (...): lost rank 2".
  const std::string& text = first->text;
  std::string of_first = text.substr(std::min(text.size(), text.find(": ") + 2));
  if (AddsInformation(of_first, call.operation, own))
    cause.message += "; first to fail was " + text;
}

}  // namespace rankrun::comm
