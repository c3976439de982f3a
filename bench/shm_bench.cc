// Times collectives of the shm backend between forked processes:
//   shm_bench [RANKS [KIND [BYTES]...]]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/timing.h"
#include "comm/shm/backend.h"
#include "store/clients/file_store.h"

namespace rankrun::bench {
namespace {

using comm::Block;
using comm::ConstBlock;
using Kind = comm::Operation::Kind;
using Microseconds = std::chrono::duration<double, std::micro>;

struct Subject {
  comm::Backend* backend;
  int rank;
  int ranks;
  std::string kind;
  size_t bytes;
  std::vector<float> data;
  std::vector<float> other;
  uint64_t number = 0;
};

void Check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "shm_bench: %s\n", what.c_str());
  std::exit(1);
}

Kind KindOf(const std::string& name) {
  static const std::map<std::string, Kind> kKinds{
      {"all_reduce", Kind::kAllReduce},         {"barrier", Kind::kBarrier},
      {"broadcast", Kind::kBroadcast},          {"all_gather", Kind::kAllGather},
      {"reduce_scatter", Kind::kReduceScatter}, {"all_to_all", Kind::kAllToAll}};
  auto found = kKinds.find(name);
  Check(found != kKinds.end(), "no such collective: " + name);
  return found->second;
}

// Returns the data of one collective. `bytes` of the subject is the size of the whole: the
// gathered output, or the scattered input.
comm::Collective DataOf(Subject& subject) {
  auto n = static_cast<size_t>(subject.ranks);
  auto* data = reinterpret_cast<std::byte*>(subject.data.data());
  auto* other = reinterpret_cast<std::byte*>(subject.other.data());
  static std::vector<Block> outputs;
  static std::vector<ConstBlock> inputs;
  const Kind kind = KindOf(subject.kind);
  bool is_whole = kind == Kind::kAllReduce || kind == Kind::kBroadcast;
  size_t part = is_whole ? subject.bytes : subject.bytes / sizeof(float) / n * sizeof(float);
  outputs.assign(n, {is_whole ? data : other, part});
  inputs.assign(n, {data, part});
  for (size_t r = 0; r < n && !is_whole; ++r) {
    outputs[r].data += r * part;
    inputs[r].data += r * part;
  }
  const auto own = static_cast<size_t>(subject.rank);
  bool has_one_output = is_whole || kind == Kind::kReduceScatter;
  bool has_one_input = is_whole || kind == Kind::kAllGather;
  comm::Collective collective{.kind = kind};
  collective.root = kind == Kind::kBroadcast ? 0 : comm::Operation::kNoRoot;
  collective.reduction = {.dtype = DType::kFloat32, .op = ReduceOp::kSum};
  if (kind == Kind::kBarrier) return collective;
  collective.outputs = has_one_output ? std::span(&outputs[own], 1) : std::span(outputs);
  collective.inputs = has_one_input ? std::span(&inputs[own], 1) : std::span(inputs);
  if (kind == Kind::kBroadcast) collective.inputs = {};
  return collective;
}

Result<void> Once(Subject& subject) {
  comm::Collective collective = DataOf(subject);
  comm::Call call{.operation = {.kind = collective.kind,
                                .dtype = DType::kFloat32,
                                .root = collective.root,
                                .count = subject.bytes / sizeof(float),
                                .number = ++subject.number},
                  .timeout = std::chrono::seconds(60)};
  return subject.backend->Run(collective, call);
}

struct Times {
  double median;
  double least;
};

// Returns the times per call. Small calls are timed in batches.
Times TimesOf(Subject& subject) {
  int batch = subject.bytes <= 4096 ? 500 : subject.bytes <= 262'144 ? 10 : 1;
  int batches = subject.bytes > 8'000'000 ? 9 : 101;
  std::vector<double> times;
  for (int i = 0; i < batches + 2; ++i) {
    auto begin = std::chrono::steady_clock::now();
    for (int j = 0; j < batch; ++j) {
      auto done = Once(subject);
      if (!done) Check(false, done.error().message);
    }
    Microseconds took = std::chrono::steady_clock::now() - begin;
    if (i >= 2) times.push_back(took.count() / batch);
  }
  return Times{Median(times), *std::min_element(times.begin(), times.end())};
}

void RunRank(int rank, int ranks, const std::string& path, const std::string& kind,
             const std::vector<size_t>& sizes) {
  auto store = store::FileStore::Open(path, "bench");
  if (!store) Check(false, store.error().message);
  comm::BackendConfig config{.global_ranks = {},
                             .group_rank = rank,
                             .store = **store,
                             .key_prefix = "bench/",
                             .network_interface = "",
                             .host = "",
                             .timeout = std::chrono::seconds(30)};
  for (int r = 0; r < ranks; ++r) config.global_ranks.push_back(r);
  auto backend = comm::shm::ShmBackend::Create(config);
  if (!backend) Check(false, backend.error().message);
  uint64_t number = 0;
  for (size_t bytes : sizes) {
    Subject subject{.backend = backend->get(),
                    .rank = rank,
                    .ranks = ranks,
                    .kind = kind,
                    .bytes = bytes,
                    .data = std::vector<float>(bytes / sizeof(float) + 1),
                    .other = std::vector<float>(bytes / sizeof(float) + 1)};
    subject.number = number;
    Times times = TimesOf(subject);
    number = subject.number;
    if (rank != 0) continue;
    std::printf("%s n=%d %10zu B %12.2f us, least %.2f us\n", kind.c_str(), ranks, bytes,
                times.median, times.least);
  }
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  std::string kind = argc > 2 ? argv[2] : "all_reduce";
  std::vector<size_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {8, 1024, 65'536, 1'048'576, 67'108'864};
  char path[] = "/tmp/shm_bench.XXXXXX";
  int file = mkstemp(path);
  Check(file >= 0 && ranks > 0, "want a number of ranks and a folder /tmp");
  close(file);
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    RunRank(rank, ranks, path, kind, sizes);
    _exit(0);
  }
  int status = 0;
  bool good = true;
  while (wait(&status) > 0) good &= status == 0;
  unlink(path);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) { return rankrun::bench::Main(argc, argv); }
