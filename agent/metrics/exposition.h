#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankrun::agent {

// One value of a metric, told apart from others of its family by its labels.
struct MetricSample {
  std::vector<std::pair<std::string, std::string>> labels = {};
  double value = 0;
};

// Samples of one metric. The name of a counter ends in "_total".
struct MetricFamily {
  enum class Kind { kCounter, kGauge };

  std::string_view name;
  Kind kind;
  std::string_view help;
  std::vector<MetricSample> samples;
};

// Returns the families in Prometheus' text format, version 0.0.4. Leaves out families
// without samples. Label values may have any bytes; those that are no UTF-8 are replaced.
// Pure.
// Source: https://prometheus.io/docs/instrumenting/exposition_formats
std::string FormatExposition(const std::vector<MetricFamily>& families);

}  // namespace rankrun::agent
