#include <algorithm>

#include "base/log.h"
#include "store/server_connection.h"

// What a server tells about itself: in the log, and to whoever asks.

namespace rankrun::store {
namespace {

using std::chrono::seconds;

constexpr size_t kWarningsPerSecond = 5;
constexpr size_t kNamesInStats = 256;
constexpr size_t kPeersInStats = 8;

bool IsAboutItself(const std::vector<std::string>& keys) {
  return keys.size() == 1 && keys.front() == kStatsKey;
}

}  // namespace

ServerStats Server::Stats() const {
  ServerStats stats{.uptime = MonotonicClock().Now() - started_,
                    .keys = engine_.key_count(),
                    .queues = engine_.queue_count(),
                    .bytes = engine_.bytes(),
                    .largest_bytes = options_.largest_store_bytes,
                    .connections = connections_.size(),
                    .largest_connections = options_.admission.connections,
                    .traffic_bytes = traffic_bytes_,
                    .requests = requests_,
                    .endings = endings_};
  auto waits = engine_.ListWaits();
  for (const Engine::Waited& waited : waits) stats.waiters += waited.waiters.size();
  size_t told = std::min(waits.size(), kNamesInStats);
  auto end_of_told = waits.begin() + static_cast<std::ptrdiff_t>(told);
  std::partial_sort(waits.begin(), end_of_told, waits.end(), [](const auto& a, const auto& b) {
    return a.waiters.size() > b.waiters.size();
  });
  for (auto waited = waits.begin(); waited != end_of_told; ++waited) {
    auto& row = stats.waits.emplace_back();
    row.name = std::move(waited->name);
    row.waiters = waited->waiters.size();
    for (size_t i = 0; i < std::min(row.waiters, kPeersInStats); ++i) {
      row.peers.push_back(connections_.at(waited->waiters[i])->stream->peer().ToString());
    }
  }
  stats.waits_omitted = waits.size() - told;
  return stats;
}

// Whether `request` was for kStatsKey, and is answered.
bool Server::AnswerAboutItself(const Request& request) {
  if (auto* get = std::get_if<GetRequest>(&request); get != nullptr && get->key == kStatsKey) {
    turn_is_over_ = true;
    AppendReply(outbox_, ValueReply{StatsText()});
    return true;
  }
  if (auto* check = std::get_if<CheckRequest>(&request);
      check != nullptr && IsAboutItself(check->keys)) {
    AppendReply(outbox_, CheckReply::kReady);
    return true;
  }
  return false;
}

// Where there are many waits, who asks again soon gets the same text: else a
// client that asks on and on would hold up all others.
const std::string& Server::StatsText() {
  constexpr std::chrono::milliseconds kCheap{1};
  constexpr int kRest = 20;
  const TimePoint begin = MonotonicClock().Now();
  if (begin < stats_fresh_until_) return stats_text_;
  stats_text_ = ToJson(Stats());
  const TimePoint end = MonotonicClock().Now();
  const Duration cost = end - begin;
  stats_fresh_until_ = cost < kCheap ? end : end + kRest * cost;
  return stats_text_;
}

// One line each for the first few in a second, then one line for their number:
// a client in a loop must not fill the log.
void Server::Warn(const std::string& message) {
  if (warnings_ == 0) warn_window_.Start(seconds(1));
  warnings_ += 1;
  if (warnings_ <= kWarningsPerSecond) LogWarn(message);
}

void Server::OnWarnWindowOver() {
  if (warnings_ > kWarningsPerSecond) {
    LogWarn("store: closed or refused " + std::to_string(warnings_ - kWarningsPerSecond) +
            " more connections within a second");
  }
  warnings_ = 0;
}

}  // namespace rankrun::store
