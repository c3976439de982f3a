#include "comm/stores/meeting_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "base/parse_number.h"
#include "store/clients/describe.h"
#include "store/clients/file_store.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using store::FilePresence;

constexpr milliseconds kPause{5};

// Value of the count once the last user has begun to remove the file; its number follows.
constexpr std::string_view kRemoved = "removed ";

TimePoint Now() { return std::chrono::steady_clock::now(); }

std::string KeyIn(const MeetingFile& file, const std::string& name) {
  return "rankrun/attempt_" + std::to_string(file.attempt) + "/" + name;
}

std::string CountKey(const MeetingFile& file) { return KeyIn(file, "users"); }
std::string LeaversKey(const MeetingFile& file) { return KeyIn(file, "left"); }
std::string NumbersKey(const MeetingFile& file) { return KeyIn(file, "numbers"); }
// Its value is the user in words. The user deletes it before its lock ends.
std::string UserKey(const MeetingFile& file, const std::string& number) {
  return KeyIn(file, "user/" + number);
}

std::string AgeOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "";
  return store::DescribeAge(status, std::chrono::system_clock::now());
}

Error Stale(const MeetingFile& file, const std::string& why) {
  return Error{ErrorCode::kInvalid, "store file " + file.path + ": " + why +
                                        ", in this run or an earlier one; " + file.age +
                                        ": want a new file for each run, or remove this one if "
                                        "that run is over"};
}

// Returns whether the file is being removed by its last user.
bool IsGoing(const Error& error) { return error.code == ErrorCode::kPeerLost; }

// Fails if a user of this attempt has ended without leaving.
Result<void> CheckUsers(const MeetingFile& file, store::Store& store) {
  auto keys = store.ListKeys();
  if (!keys) return std::move(keys).error();
  const std::string prefix = UserKey(file, "");
  for (const std::string& key : *keys) {
    if (!key.starts_with(prefix)) continue;
    auto number = ParseNumber<int64_t>(std::string_view(key).substr(prefix.size()));
    if (!number) continue;
    auto lives = FilePresence::Lives(file.path, *number);
    if (!lives) return std::move(lives).error();
    if (*lives) continue;
    auto user = store.Get(key, milliseconds(0));
    if (user) return Stale(file, *user + " has ended without Destroy()");
    // It has left since the list was read.
    if (user.error().code != ErrorCode::kTimeout) return std::move(user).error();
  }
  return {};
}

// Shows other users that this one lives, and under which key its words are.
Result<void> ShowUser(MeetingFile& file, store::Store& store) {
  auto number = store.Add(NumbersKey(file), 1);
  if (!number) return std::move(number).error();
  auto presence = FilePresence::Show(file.path, *number);
  if (!presence) return std::move(presence).error();
  file.number = *number;
  file.presence = *std::move(presence);
  if (file.user.empty()) return {};
  // Fails if the path leads to another file than that of the store.
  return store.Set(UserKey(file, std::to_string(*number)), file.user);
}

void HideUser(MeetingFile& file, store::Store& store) {
  if (file.user.empty()) return;
  static_cast<void>(store.Delete(UserKey(file, std::to_string(file.number))));
}

Error BeingRemoved(const MeetingFile& file) {
  return Error{ErrorCode::kPeerLost,
               "store file " + file.path + ": its last user is removing it: is that one stopped?"};
}

// Fails if the last user of this attempt removes the file, or has died while it did.
Result<void> CheckNotRemoved(const MeetingFile& file, store::Store& store) {
  auto count = store.Get(CountKey(file), milliseconds(0));
  if (!count && count.error().code == ErrorCode::kTimeout) return {};  // no user has come
  if (!count) return std::move(count).error();
  if (!count->starts_with(kRemoved)) return {};
  auto remover = ParseNumber<int64_t>(std::string_view(*count).substr(kRemoved.size()));
  auto lives = FilePresence::Lives(file.path, remover.value_or(0));
  if (!lives) return std::move(lives).error();
  if (*lives) return BeingRemoved(file);
  // The remover removes the file before its lock ends.
  const std::string key = CountKey(file);
  auto is_there = store.Check(std::span(&key, 1));
  if (!is_there) return std::move(is_there).error();
  return Stale(file, "its last user has died while it removed the file");
}

Result<std::unique_ptr<store::Store>> EnterOnce(MeetingFile& file, const DeathWatch& deaths) {
  auto opened = store::FileStore::Open(file.path, file.world, {.deaths = deaths});
  if (!opened) return std::move(opened).error();
  std::unique_ptr<store::Store> store = *std::move(opened);
  file.age = AgeOf(file.path);
  if (auto ok = CheckNotRemoved(file, *store); !ok) return std::move(ok).error();
  if (!file.user.empty()) {
    if (auto ok = CheckUsers(file, *store); !ok) return std::move(ok).error();
  }
  if (auto ok = ShowUser(file, *store); !ok) return std::move(ok).error();
  auto users = store->Add(CountKey(file), 1);
  if (users) return store;
  HideUser(file, *store);
  file.presence = {};
  if (users.error().code == ErrorCode::kInvalid) return BeingRemoved(file);
  return std::move(users).error();
}

}  // namespace

Result<std::unique_ptr<store::Store>> EnterFile(MeetingFile& file, TimePoint deadline,
                                                const DeathWatch& deaths) {
  for (;;) {
    auto store = EnterOnce(file, deaths);
    if (store || !IsGoing(store.error())) return store;
    if (Now() >= deadline) return Error{ErrorCode::kTimeout, store.error().message};
    deaths.SleepUntil(std::min<TimePoint>(Now() + kPause, deadline));
    if (deaths.has_death()) return Error{ErrorCode::kCancelled, deaths.Message()};
  }
}

void NoteInFile(const MeetingFile& file, store::Store& store, const std::string& what) {
  static_cast<void>(
      store.Set(UserKey(file, std::to_string(file.number)), file.user + ", " + what + ","));
}

void LeaveFile(MeetingFile& file, store::Store& store) {
  HideUser(file, store);
  if (!store.Add(LeaversKey(file), 1)) return;
  auto users = store.Add(CountKey(file), -1);
  if (!users || *users > 0) return;
  // Others have left since, so the result above may be too small.
  auto leavers = store.Add(LeaversKey(file), 0);
  if (!leavers || *leavers < file.min_leavers) return;
  // Another user may have come since.
  auto last =
      store.CompareSet(CountKey(file), "0", std::string(kRemoved) + std::to_string(file.number));
  if (last && last->swapped) unlink(file.path.c_str());
}

}  // namespace rankrun::comm
