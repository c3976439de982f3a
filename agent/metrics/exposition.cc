#include "agent/metrics/exposition.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/printable.h"

namespace rankrun::agent {
namespace {

std::string ValueText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text;  // the shortest text that reads back as this value
  auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string LabelText(std::string_view value) {
  const std::string shown = IsUtf8(value) ? std::string(value) : Escaped(value);
  std::string text;
  for (char c : shown) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

void AddSample(std::string& text, std::string_view name, const MetricSample& sample) {
  text += name;
  for (size_t i = 0; i < sample.labels.size(); ++i) {
    const auto& [label, value] = sample.labels[i];
    text += (i == 0 ? "{" : ",") + label + "=\"" + LabelText(value) + "\"";
  }
  if (!sample.labels.empty()) text += "}";
  text += " " + ValueText(sample.value) + "\n";
}

}  // namespace

std::string FormatExposition(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) {
    if (family.samples.empty()) continue;
    const bool is_counter = family.kind == MetricFamily::Kind::kCounter;
    text += "# HELP " + std::string(family.name) + " " + std::string(family.help) + "\n# TYPE " +
            std::string(family.name) + (is_counter ? " counter\n" : " gauge\n");
    for (const MetricSample& sample : family.samples) AddSample(text, family.name, sample);
  }
  return text;
}

}  // namespace rankrun::agent
