#include "agent/metrics/exposition.h"

#include <gtest/gtest.h>

#include <limits>

namespace rankrun::agent {
namespace {

using enum MetricFamily::Kind;

TEST(ExpositionTest, AFamilyHasHelpTypeAndSamples) {
  EXPECT_EQ(FormatExposition({{"a_total",
                               kCounter,
                               "Some help.",
                               {{.labels = {{"kind", "exit"}, {"x", "y"}}, .value = 3},
                                {.labels = {}, .value = 0.5}}}}),
            "# HELP a_total Some help.\n# TYPE a_total counter\n"
            "a_total{kind=\"exit\",x=\"y\"} 3\na_total 0.5\n");
}

TEST(ExpositionTest, AFamilyWithoutSamplesIsLeftOut) {
  EXPECT_EQ(FormatExposition({{"a", kGauge, "Help.", {}}}), "");
}

std::string Sample(MetricSample sample) {
  std::string text = FormatExposition({{"a", kGauge, "Help.", {std::move(sample)}}});
  constexpr std::string_view kHead = "# HELP a Help.\n# TYPE a gauge\n";
  EXPECT_TRUE(text.starts_with(kHead)) << text;
  return text.substr(kHead.size());
}

TEST(ExpositionTest, LabelsAreEscaped) {
  EXPECT_EQ(Sample({.labels = {{"l", "a\"b\\c\nd"}}, .value = 1}), "a{l=\"a\\\"b\\\\c\\nd\"} 1\n");
  EXPECT_EQ(Sample({.labels = {{"l", "\xC3\xA4"}}, .value = 1}), "a{l=\"\xC3\xA4\"} 1\n");
  EXPECT_EQ(Sample({.labels = {{"l", "\xFF"}}, .value = 1}), "a{l=\"\\\\xff\"} 1\n");
}

TEST(ExpositionTest, ValuesReadBackExactly) {
  EXPECT_EQ(Sample({.value = 1764167624.25}), "a 1764167624.25\n");
  EXPECT_EQ(Sample({.value = 0.1}), "a 0.1\n");
  EXPECT_EQ(Sample({.value = 1e300}), "a 1e+300\n");
  EXPECT_EQ(Sample({.value = -2}), "a -2\n");
  EXPECT_EQ(Sample({.value = std::numeric_limits<double>::infinity()}), "a +Inf\n");
  EXPECT_EQ(Sample({.value = -std::numeric_limits<double>::infinity()}), "a -Inf\n");
  EXPECT_EQ(Sample({.value = std::numeric_limits<double>::quiet_NaN()}), "a NaN\n");
}

}  // namespace
}  // namespace rankrun::agent
