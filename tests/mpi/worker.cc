// One rank of a job of mpirun: mpi_worker CASE FILE, where the ranks meet in FILE. Prints
// "rank R: <text of the case>".

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/comm/conformance.h"
#include "tests/comm/late_calls.h"

namespace rankrun::comm {
namespace {

using Case = std::function<std::string(ProcessGroup& world)>;

// A process of mpirun.
struct Place {
  std::string rank;
  std::string size;
  std::string file;  // in which the ranks meet
};

ProcessGroup& JoinAt(const Place& place, const std::string& suffix = "") {
  return Init({.timeout = std::chrono::seconds(60),
               .backend = "mpi",
               .init_method = "file://" + place.file + suffix,
               .rank = std::stoi(place.rank),
               .world_size = std::stoi(place.size)});
}

VectorRun RunOf(const Json& vector) {
  for (const auto* runs : {&CollectiveRuns(), &MessageRuns(), &ObjectRuns()}) {
    auto run = runs->find(vector.at("op"));
    if (run != runs->end()) return run->second;
  }
  return nullptr;
}

// Runs the vectors for this number of ranks, each in a world of its own.
std::string RunVectors(const Place& place) {
  int count = 0;
  std::string failures;
  for (const Json& vector : Vectors()) {
    VectorRun run = RunOf(vector);
    if (run == nullptr || std::to_string(vector.at("W").get<int>()) != place.size) continue;
    auto id = vector.at("id").get<std::string>();
    std::string failure = run(JoinAt(place, "-" + id), vector);
    Destroy();
    count += 1;
    if (!failure.empty()) failures += id + ": " + failure + "; ";
  }
  return count > 0 ? "passed" + (failures.empty() ? "" : ", but " + failures) : "no vectors";
}

// Sums of all sizes around those of MPI's messages, which move in several.
std::string Sum(ProcessGroup& world) {
  std::string wrong;
  for (size_t count : {1U, 1000U, 16383U, 16384U, 16385U, 1'000'000U}) {
    std::vector<float> data(count, 1);
    world.AllReduce(data);
    double sum = std::accumulate(data.begin(), data.end(), 0.0);
    if (sum != static_cast<double>(count) * world.world_size()) {
      wrong += " " + std::to_string(count);
    }
  }
  return wrong.empty() ? "right" : "wrong:" + wrong;
}

std::string ErrorOf(const std::function<void()>& act) {
  try {
    act();
    return "no error";
  } catch (const DistError& error) {
    return error.what();
  }
}

std::string Mismatch(ProcessGroup& world) {
  std::vector<float> data(world.global_rank() == 0 ? 10 : 20);
  return ErrorOf([&] { world.AllReduce(data); });
}

std::string AbsentRank(ProcessGroup& world) {
  std::vector<float> data(10);
  std::string text;
  if (world.global_rank() != 1) {
    text = ErrorOf([&] { world.AllReduce(data, ReduceOp::kSum, std::chrono::milliseconds(300)); });
  }
  NewGroup({.backend = "shm"});  // synchronizes the ranks through the store
  return text;
}

// Sums in two groups that have ranks in common.
std::string InGroups(ProcessGroup& world) {
  ProcessGroup& some = NewGroup({.ranks = {2, 1}, .sort_ranks = false});
  ProcessGroup& all = NewGroup({});
  std::vector<int> sum{world.global_rank()}, of_some{world.global_rank()};
  if (some.is_member()) some.AllReduce(of_some);
  all.AllReduce(sum);
  return std::to_string(sum[0]) + " " + std::to_string(of_some[0]);
}

// Rank 1 makes each call after all others have failed in it. Returns the calls of which it has
// a result.
std::string LateRank(const Place& place) {
  ProcessGroup& world = JoinAt(place);
  const bool is_late = place.rank == "1";
  std::string with_result;
  for (const auto& entry : LateCalls()) {
    const std::string& name = entry.first;
    const LateCall& call = entry.second;
    const bool is_rooted = call.results == LateCall::Results::kRoot;
    for (size_t count : {2U, 300'000U}) {
      ProcessGroup& group = NewGroup({});
      auto mark = [&](int rank) {
        return place.file + "-" + name + std::to_string(count) + "-" + std::to_string(rank);
      };
      for (int r = 0; is_late && r < world.world_size(); ++r) {
        while (r != 1 && !std::filesystem::exists(mark(r))) std::this_thread::yield();
      }
      const std::chrono::milliseconds timeout(is_late ? 60'000 : 100);
      std::string outcome = OutcomeOf([&] {
        call.run(group, count, GlobalRank{is_rooted ? 0 : 1}, CallOptions{.timeout = timeout});
      });
      std::ofstream(mark(world.global_rank())) << "over";
      if (is_late && outcome == "success") with_result += name + std::to_string(count) + " ";
    }
  }
  Destroy();
  return "results: " + with_result;
}

// A group on MPI of some ranks of a world that has none.
std::string SomeRanks(const Place& place) {
  Init({.timeout = std::chrono::seconds(60),
        .backend = "shm",
        .init_method = "file://" + place.file,
        .rank = std::stoi(place.rank),
        .world_size = std::stoi(place.size)});
  std::string text = ErrorOf([&] { NewGroup({.ranks = {0, 1}, .backend = "mpi"}); });
  Destroy();
  return text;
}

// The program knows nothing of mpirun.
std::string ByVariables() {
  ProcessGroup& world = Init({.timeout = std::chrono::seconds(60), .backend = "shm"});
  std::string text = std::to_string(world.global_rank()) + " of " +
                     std::to_string(world.world_size()) + ", here " +
                     std::to_string(NodeLocalRank());
  Destroy();
  return text;
}

// Another thread of rank 1 aborts the group in which all ranks wait.
std::string Aborted(ProcessGroup& world) {
  std::vector<float> data(10);
  const bool aborts = world.global_rank() == 1;
  std::jthread watchdog([&] {
    if (aborts) Abort(world, "enough");
  });
  return ErrorOf([&] { world.Recv(data, GlobalRank{aborts ? 0 : 1}); });
}

// The program starts and ends MPI itself.
std::string OwnMpi(const Place& place) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  std::string text = Sum(JoinAt(place));
  Destroy();
  MPI_Finalize();
  return text;
}

// Rank 0 leaves the group when the others have left it.
std::string LeftLate(const Place& place) {
  std::string text = Sum(JoinAt(place));
  auto mark = [&](const std::string& rank) { return place.file + "-left-" + rank; };
  if (place.rank == "0") {
    for (int r = 1; r < std::stoi(place.size); ++r) {
      while (!std::filesystem::exists(mark(std::to_string(r)))) std::this_thread::yield();
    }
  }
  Destroy();
  std::ofstream(mark(place.rank)) << "left";
  return text;
}

// Rank 0 waits for a message, which rank 1 does not send.
std::string LeftUnderWay(ProcessGroup& world) {
  static std::vector<float> data(1'000'000);
  if (world.global_rank() == 0) world.IRecv(data, GlobalRank{1});
  return "left";
}

const std::map<std::string, Case>& Cases() {
  static const std::map<std::string, Case> kCases{
      {"sum", Sum},         {"mismatch", Mismatch},      {"absent", AbsentRank},
      {"groups", InGroups}, {"under_way", LeftUnderWay}, {"abort", Aborted},
  };
  return kCases;
}

// Runs one case. Returns its text.
std::string Run(const std::string& name, const Place& place) {
  if (name == "vectors") return RunVectors(place);
  if (name == "variables") return ByVariables();
  if (name == "own_mpi") return OwnMpi(place);
  if (name == "some") return SomeRanks(place);
  if (name == "late") return LeftLate(place);
  if (name == "late_calls") return LateRank(place);
  std::string text = Cases().at(name)(JoinAt(place));
  bool ends_without_destroy = name == "sum" || name == "under_way";
  if (!ends_without_destroy) Destroy();
  return text;
}

int Main(const std::string& name, const std::string& file) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (rank == nullptr || size == nullptr) return 2;
  std::string text;
  std::string error = ErrorOf([&] { text = Run(name, {rank, size, file}); });
  std::printf("rank %s: %s\n", rank, error == "no error" ? text.c_str() : error.c_str());
  return 0;
}

}  // namespace
}  // namespace rankrun::comm

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return rankrun::comm::Main(argv[1], argv[2]);
}
