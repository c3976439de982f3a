#include "agent/metrics/store_metrics.h"

#include <utility>

namespace rankrun::agent {

using enum MetricFamily::Kind;

void AddStore(std::vector<MetricFamily>& families, const store::ServerStats& stats) {
  auto gauge = [&](std::string_view name, std::string_view help, size_t value) {
    families.push_back({name, kGauge, help, {{.labels = {}, .value = static_cast<double>(value)}}});
  };
  MetricFamily requests{
      "rankrun_store_requests_total", kCounter, "Requests to the store of the attempt.", {}};
  for (size_t i = 0; i < stats.requests.size(); ++i) {
    if (stats.requests[i] == 0) continue;
    requests.samples.push_back({.labels = {{"operation", std::string(store::kRequestNames[i])}},
                                .value = static_cast<double>(stats.requests[i])});
  }
  families.push_back(std::move(requests));
  gauge("rankrun_store_keys", "Keys in the store of the attempt.", stats.keys);
  gauge("rankrun_store_bytes", "Size of the keys and values in the store.", stats.bytes);
  gauge("rankrun_store_connections", "Connections to the store.", stats.connections);
  gauge("rankrun_store_waiters", "Requests that wait for a key of the store.", stats.waiters);
}

}  // namespace rankrun::agent
