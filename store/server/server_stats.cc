#include "store/server/server_stats.h"

#include <nlohmann/json.hpp>

namespace rankrun::store {
namespace {

nlohmann::json RequestsToJson(const RequestCounts& counts) {
  auto json = nlohmann::json::object();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) json[std::string(kRequestNames[i])] = counts[i];
  }
  return json;
}

uint64_t Count(const EndingCounts& counts, Ending ending) {
  return counts[static_cast<size_t>(ending)];
}

}  // namespace

std::string ToJson(const ServerStats& stats) {
  auto waits = nlohmann::json::array();
  for (const ServerStats::Waited& waited : stats.waits) {
    waits.push_back({{"key", waited.name}, {"waiters", waited.waiters}, {"peers", waited.peers}});
  }
  nlohmann::json json = {
      {"server", "rankrun"},
      {"uptime_s", stats.uptime.count()},
      {"keys", stats.keys},
      {"queues", stats.queues},
      {"bytes", stats.bytes},
      {"largest_bytes", stats.largest_bytes},
      {"connections", stats.connections},
      {"largest_connections", stats.largest_connections},
      {"traffic_bytes", stats.traffic_bytes},
      {"closed",
       {{"protocol", Count(stats.endings, Ending::kProtocol)},
        {"limit", Count(stats.endings, Ending::kLimit)},
        {"stalled", Count(stats.endings, Ending::kStalled)},
        {"refused", Count(stats.endings, Ending::kRefused)}}},
      {"requests", RequestsToJson(stats.requests)},
      {"waiters", stats.waiters},
      {"waits", std::move(waits)},
      {"waits_omitted", stats.waits_omitted},
  };
  // Keys are bytes: replace invalid UTF-8 instead of throwing.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace rankrun::store
