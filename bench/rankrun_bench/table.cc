#include "bench/rankrun_bench/table.h"

#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace rankrun::bench {
namespace {

[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

// Text of a column that does not apply, as in nccl-tests.
constexpr const char* kNone = "none";
constexpr int kNoRoot = -1;

const char* TypeOf(const Heading& heading, const Options& options) {
  return heading.collective == Collective::kBarrier ? kNone : NameOf(options.dtype);
}

const char* OpOf(const Heading& heading, const Options& options) {
  bool reduces = heading.collective == Collective::kAllReduce ||
                 heading.collective == Collective::kReduceScatter;
  return reduces ? NameOf(options.op) : kNone;
}

int RootOf(const Heading& heading, const Options& options) {
  return heading.collective == Collective::kBroadcast ? options.root : kNoRoot;
}

std::string Microseconds(double value) {
  return Format(value < 100 ? "%.2f" : value < 10'000 ? "%.1f" : "%.0f", value);
}

}  // namespace

std::string TableHead(const Heading& heading, const Options& options) {
  return Format("# %s: %d ranks, backend %s, %d calls to warm up, median of up to %d batches\n",
                NameOf(heading.collective), heading.ranks, heading.backend.c_str(),
                options.plan.warmup_calls, options.plan.batches) +
         Format("#%11s %12s %10s %8s %6s %9s %8s %8s %8s\n", "size", "count", "type", "redop",
                "root", "time", "algbw", "busbw", "#wrong") +
         Format("#%11s %12s %10s %8s %6s %9s %8s %8s\n", "(B)", "(elements)", "", "", "", "(us)",
                "(GB/s)", "(GB/s)");
}

std::string TableLine(const Heading& heading, const Options& options, const Figures& figures) {
  return Format("%12zu %12zu %10s %8s %6d %9s %8.2f %8.2f %8lld\n", figures.bytes, figures.count,
                TypeOf(heading, options), OpOf(heading, options), RootOf(heading, options),
                Microseconds(figures.times.microseconds).c_str(), figures.algorithm_bandwidth,
                figures.bus_bandwidth, static_cast<long long>(figures.wrong));
}

std::string TableFoot(int64_t wrong, double mean_bus_bandwidth) {
  return Format("# wrong elements: %lld %s, mean bus bandwidth: %.3f GB/s\n",
                static_cast<long long>(wrong), wrong == 0 ? "OK" : "FAILED", mean_bus_bandwidth);
}

std::string JsonLine(const Heading& heading, const Options& options, const Figures& figures) {
  nlohmann::ordered_json line{
      {"collective", NameOf(heading.collective)},
      {"backend", heading.backend},
      {"ranks", heading.ranks},
      {"bytes", figures.bytes},
      {"count", figures.count},
      {"type", TypeOf(heading, options)},
      {"redop", OpOf(heading, options)},
      {"root", RootOf(heading, options)},
      {"us", figures.times.microseconds},
      {"algbw", figures.algorithm_bandwidth},
      {"busbw", figures.bus_bandwidth},
      {"wrong", figures.wrong},
      {"calls", figures.times.calls},
      {"batches", figures.times.batches},
  };
  return line.dump() + "\n";
}

}  // namespace rankrun::bench
