// rankrun-bench: measures collectives, as a worker: rankrun -n 4 rankrun-bench all_reduce

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <rankrun/distributed.h>

#include "bench/rankrun_bench/measurement.h"
#include "bench/rankrun_bench/options.h"
#include "bench/rankrun_bench/table.h"
#include "bench/rankrun_bench/tune.h"

namespace rankrun::bench {
namespace {

constexpr int kFailed = 1;

// Prints on rank 0 only.
class Printer {
 public:
  Printer(const ProcessGroup& world, const Options& options, Collective collective)
      : speaks_(world.global_rank() == 0),
        options_(options),
        heading_{
            .collective = collective, .ranks = world.world_size(), .backend = world.backend()} {
    if (!options_.json) Print(TableHead(heading_, options_));
  }
  void Line(const Figures& figures) {
    Print(options_.json ? JsonLine(heading_, options_, figures)
                        : TableLine(heading_, options_, figures));
    wrong_ += figures.wrong;
    bandwidths_ += figures.bus_bandwidth;
    lines_ += 1;
  }
  void Foot() const {
    if (!options_.json) Print(TableFoot(wrong_, lines_ == 0 ? 0 : bandwidths_ / lines_));
  }

 private:
  void Print(const std::string& text) const {
    if (!speaks_) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);  // show each line as soon as it is measured
  }

  const bool speaks_;
  const Options& options_;
  const Heading heading_;
  int64_t wrong_ = 0;
  double bandwidths_ = 0;
  int lines_ = 0;
};

// Returns the number of wrong elements.
int64_t MeasureSizes(ProcessGroup& world, const Options& options, Collective collective) {
  Printer printer(world, options, collective);
  int64_t wrong = 0;
  size_t previous = 0;
  size_t bytes = options.min_bytes;
  for (bool more = true; more; bytes *= options.factor) {
    more = collective != Collective::kBarrier && bytes <= options.max_bytes / options.factor;
    Measurement measurement(world, options, collective, bytes);
    bool measured = previous != 0 && measurement.bytes() == previous;
    previous = measurement.bytes();
    if (measured) continue;  // all sizes below one element per rank are measured once
    Figures figures = measurement.Run();
    printer.Line(figures);
    wrong += figures.wrong;
  }
  printer.Foot();
  return wrong;
}

int64_t MeasureCollectives(const Options& options) {
  InitOptions init;
  if (!options.backend.empty()) init.backend = options.backend;
  ProcessGroup& world = Init(init);
  int64_t wrong = 0;
  for (Collective collective : options.collectives) {
    wrong += MeasureSizes(world, options, collective);
  }
  Destroy();
  return wrong;
}

bool IsRank0() {
  const char* rank = std::getenv("RANK");
  return rank == nullptr || std::strcmp(rank, "0") == 0;
}

// Only rank 0 prints the help. Every rank prints an error, because the first
// rank that fails ends the others.
int PrintAndEnd(const Parsed& parsed) {
  if (*parsed.exit_code != 0) {
    std::fputs(parsed.text.c_str(), stderr);
  } else if (IsRank0()) {
    std::fputs(parsed.text.c_str(), stdout);
  }
  return *parsed.exit_code;
}

int Main(int argc, char** argv) {
  Parsed parsed = ParseOptions(argc, argv);
  if (parsed.exit_code) return PrintAndEnd(parsed);
  try {
    const Options& options = parsed.options;
    int64_t wrong = options.tune ? Tune(options) : MeasureCollectives(options);
    return wrong == 0 ? 0 : kFailed;
  } catch (const std::bad_alloc&) {
    std::fputs("rankrun-bench: no memory for buffers of that size; --max-bytes limits it\n",
               stderr);
  } catch (const DistError& error) {
    std::fprintf(stderr, "rankrun-bench: %s\n", error.what());
  }
  Destroy();
  return kFailed;
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) { return rankrun::bench::Main(argc, argv); }
