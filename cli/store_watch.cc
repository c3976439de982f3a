#include "cli/store_watch.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/store_client.h"
#include "cli/store_text.h"

namespace rankrun::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDefaultInterval{200};
constexpr milliseconds kMinInterval{1};
constexpr std::chrono::seconds kMaxWait{10};
constexpr std::chrono::hours kForever{24 * 365};

// One key, with its state at the last look.
struct Watched {
  std::string key;
  std::optional<std::string> value = {};
  bool looked_at = false;
  bool is_queue = false;
};

std::optional<ChangeKind> Compare(const Watched& before, const std::optional<std::string>& now) {
  if (before.value == now) return std::nullopt;
  if (!now) return ChangeKind::kDeleted;
  if (before.value) return ChangeKind::kChanged;
  return before.looked_at ? ChangeKind::kSet : ChangeKind::kIs;
}

class Watcher {
 public:
  Watcher(StoreClient& client, const CommandLine& line)
      : store_(*client.store),
        queues_(store_),
        as_json_(line.flags.Has("json")),
        interval_(
            std::max(line.flags.Seconds("interval").value_or(kDefaultInterval), kMinInterval)),
        deadline_(MonotonicClock().Now() + line.flags.Seconds("timeout").value_or(kForever)) {
    for (const std::string& key : line.operands) watched_.push_back({key});
  }

  int Run() {
    while (true) {
      if (int failed = LookAtAll()) return failed;
      Duration left = deadline_ - MonotonicClock().Now();
      if (left <= Duration(0)) return kExitDone;
      if (int failed = Pause(left)) return failed;
    }
  }

 private:
  int LookAtAll() {
    for (Watched& watched : watched_) {
      auto now = Look(store_, watched.key);
      if (!now) return FailStore(now.error());
      watched.is_queue = *now && (*now)->empty() && queues_.IsQueue(watched.key);
      if (watched.is_queue) *now = std::nullopt;
      if (auto kind = Compare(watched, *now)) {
        int failed = Show({.at = std::chrono::system_clock::now(),
                           .kind = *kind,
                           .key = watched.key,
                           .value = now->value_or("")});
        if (failed) return failed;
      }
      watched.value = std::move(*now);
      watched.looked_at = true;
    }
    return kExitDone;
  }

  int Show(const Change& change) const {
    return Print(as_json_ ? ChangeJson(change) : ChangeLine(change));
  }

  // Waits for the next look. For a single key that is not set, WAIT of the server
  // ends the pause early, unless a queue has the name of the key.
  int Pause(Duration left) {
    if (watched_.size() > 1 || watched_[0].value || watched_[0].is_queue) {
      std::this_thread::sleep_for(std::min<Duration>(interval_, left));
      return kExitDone;
    }
    auto pause = std::chrono::ceil<milliseconds>(std::min<Duration>(kMaxWait, left));
    auto came = store_.Wait({&watched_[0].key, 1}, pause);
    // The next look reports a broken connection.
    if (came || came.error().code == ErrorCode::kTimeout) return kExitDone;
    return FailStore(came.error());
  }

  store::TcpStore& store_;
  QueueFinder queues_;
  const bool as_json_;
  const milliseconds interval_;
  const TimePoint deadline_;
  std::vector<Watched> watched_;
};

}  // namespace

int RunWatch(const CommandLine& line) {
  auto client = OpenStoreToWatch(line.flags);
  if (!client) return FailStore(client.error());
  return Watcher(*client, line).Run();
}

}  // namespace rankrun::cli
