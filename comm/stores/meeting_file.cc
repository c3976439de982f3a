#include "comm/stores/meeting_file.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "store/clients/file_store.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPause{5};

// Value of the count once the last rank has begun to remove the file.
constexpr char kRemoved[] = "removed";

TimePoint Now() { return std::chrono::steady_clock::now(); }

std::string CountKey(const MeetingFile& file) {
  return "rankrun/attempt_" + std::to_string(file.attempt) + "/users";
}

std::string LeaversKey(const MeetingFile& file) {
  return "rankrun/attempt_" + std::to_string(file.attempt) + "/left";
}

// Returns whether the file is being removed by its last user.
bool IsGoing(const Error& error) { return error.code == ErrorCode::kPeerLost; }

Result<std::unique_ptr<store::Store>> EnterOnce(const MeetingFile& file, const DeathWatch& deaths) {
  auto opened = store::FileStore::Open(file.path, file.world, {.deaths = deaths});
  if (!opened) return std::move(opened).error();
  std::unique_ptr<store::Store> store = *std::move(opened);
  auto users = store->Add(CountKey(file), 1);
  if (users) return store;
  if (users.error().code != ErrorCode::kInvalid) return users.error();
  return Error{ErrorCode::kPeerLost, "store file " + file.path +
                                         ": its last user is removing it, or has died while it "
                                         "did: remove it if that run is over"};
}

}  // namespace

Result<std::unique_ptr<store::Store>> EnterFile(const MeetingFile& file, TimePoint deadline,
                                                const DeathWatch& deaths) {
  for (;;) {
    auto store = EnterOnce(file, deaths);
    if (store || !IsGoing(store.error())) return store;
    if (Now() >= deadline) return Error{ErrorCode::kTimeout, store.error().message};
    deaths.SleepUntil(std::min<TimePoint>(Now() + kPause, deadline));
    if (deaths.has_death()) return Error{ErrorCode::kCancelled, deaths.Message()};
  }
}

void LeaveFile(const MeetingFile& file, store::Store& store) {
  if (!store.Add(LeaversKey(file), 1)) return;
  auto users = store.Add(CountKey(file), -1);
  if (!users || *users > 0) return;
  // Others have left since, so the result above may be too small.
  auto leavers = store.Add(LeaversKey(file), 0);
  if (!leavers || *leavers < file.min_leavers) return;
  // Another user may have come since.
  auto last = store.CompareSet(CountKey(file), "0", kRemoved);
  if (last && last->swapped) unlink(file.path.c_str());
}

}  // namespace rankrun::comm
