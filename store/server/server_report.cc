#include <algorithm>

#include "base/log.h"
#include "base/uv/uv_loop.h"
#include "store/engine/quoted_key.h"
#include "store/server/server_connection.h"

// Statistics and warnings of a server.

namespace rankrun::store {
namespace {

using std::chrono::seconds;

constexpr size_t kWarningsPerSecond = 5;
constexpr size_t kNamesInStats = 256;
constexpr size_t kPeersInStats = 8;

// Time for on_refusal to find the client's process, even on a busy machine.
constexpr seconds kMaxSearch{2};

}  // namespace

void Server::LimitMemory(size_t bytes) {
  loop_.AssertOnLoop();
  options_.largest_store_bytes = options_.largest_traffic_bytes = bytes;
  engine_.LimitMemory(bytes);
}

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
  size_t listed = std::min(waits.size(), kNamesInStats);
  auto end_of_listed = waits.begin() + static_cast<std::ptrdiff_t>(listed);
  std::partial_sort(waits.begin(), end_of_listed, waits.end(), [](const auto& a, const auto& b) {
    return a.waiters.size() > b.waiters.size();
  });
  for (auto waited = waits.begin(); waited != end_of_listed; ++waited) {
    auto& row = stats.waits.emplace_back();
    row.name = std::move(waited->name);
    row.waiters = waited->waiters.size();
    for (size_t i = 0; i < std::min(row.waiters, kPeersInStats); ++i) {
      row.peers.push_back(connections_.at(waited->waiters[i])->stream->peer().ToString());
    }
  }
  stats.waits_omitted = waits.size() - listed;
  return stats;
}

std::vector<Server::Waited> Server::ListWaits(size_t max) const {
  std::vector<Waited> waits;
  for (const Engine::Waited& waited : engine_.ListWaits()) {
    Waited& row = waits.emplace_back(Waited{waited.name, {}});
    for (ConnectionId id : waited.waiters) {
      if (max == 0) return waits;
      max -= 1;
      row.ports.push_back(connections_.at(id)->stream->peer().port());
    }
  }
  return waits;
}

// Answers a request for kStatsKey or a reason for a refusal. Returns whether `request` was one.
bool Server::AnswerStatsRequest(const Request& request) {
  const auto* get = std::get_if<GetRequest>(&request);
  const auto* check = std::get_if<CheckRequest>(&request);
  const bool has_key = get != nullptr || (check != nullptr && check->keys.size() == 1);
  if (!has_key) return false;
  const std::string& key = get != nullptr ? get->key : check->keys.front();
  const bool is_stats = key == kStatsKey;
  const std::string* refusal = key.starts_with(kRefusalKeys) ? refusals_.Find(key) : nullptr;
  if (!is_stats && refusal == nullptr) return false;
  if (check != nullptr) {
    AppendReply(outbox_, CheckReply::kReady);
    return true;
  }
  turn_is_over_ |= is_stats;
  AppendReply(outbox_, ValueReply{is_stats ? StatsText() : *refusal});
  return true;
}

// Returns the statistics as JSON. An expensive text is reused for a while,
// because otherwise a client that asks in a loop would delay all others.
const std::string& Server::StatsText() {
  constexpr std::chrono::milliseconds kMaxUncachedCost{1};
  constexpr int kCacheFactor = 20;
  TimePoint begin = MonotonicClock().Now();
  if (begin < stats_fresh_until_) return stats_text_;
  stats_text_ = ToJson(Stats());
  TimePoint end = MonotonicClock().Now();
  Duration cost = end - begin;
  stats_fresh_until_ = cost < kMaxUncachedCost ? end : end + kCacheFactor * cost;
  return stats_text_;
}

// Keeps the reason for the client, whose protocol has no errors.
void Server::RefuseRequest(Connection& connection, std::string_view why) {
  refusals_.Note(connection.stream->peer(), std::string(why));
  if (!options_.on_refusal) return Refuse(connection, Ending::kLimit, why);
  endings_[static_cast<size_t>(Ending::kLimit)] += 1;
  if (!MayWarn()) return End(connection);
  if (!Stop(connection)) return;
  if (refused_.empty()) drop_refused_.Start(kMaxSearch);
  refused_.push_back(connection.id);
  options_.on_refusal({.client = connection.stream->peer(), .why = std::string(why)});
}

void Server::NameRefusal(const SocketAddress& client, const std::string& why) {
  loop_.AssertOnLoop();
  refusals_.Note(client, why);
  auto is_the_client = [this, address = client.ToString()](ConnectionId id) {
    return Find(id).stream->peer().ToString() == address;
  };
  auto found = std::ranges::find_if(refused_, is_the_client);
  if (found == refused_.end()) return;
  ended_.push_back(*found);
  refused_.erase(found);
  drop_ended_.Start(seconds(0));
}

// Logs the first few warnings of a second, then one line with the number of the
// rest, so that a client in a loop cannot fill the log.
void Server::Warn(const std::string& message) {
  if (MayWarn()) LogWarn(message);
}

bool Server::MayWarn() {
  if (warnings_ == 0) warn_window_.Start(seconds(1));
  warnings_ += 1;
  return warnings_ <= kWarningsPerSecond;
}

void Server::OnWarnWindowOver() {
  if (warnings_ > kWarningsPerSecond) {
    LogWarn("store: closed or refused " + std::to_string(warnings_ - kWarningsPerSecond) +
            " more connections within a second");
  }
  warnings_ = 0;
}

}  // namespace rankrun::store
