// Objects: each rank hands rank 0 a report of any size; rank 0 makes a plan of
// them, of which each gets its part. They are JSON in the form of CBOR, which
// programs in other languages read, too.
//
//   rankrun -n 4 reports

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include <rankrun/cbor.h>
#include <rankrun/distributed.h>
#include <rankrun/objects.h>

namespace {

using nlohmann::json;
using rankrun::FromCbor;
using rankrun::Object;
using rankrun::ToCbor;

// How many of `files` each rank is to take: more if it is faster.
std::vector<Object> Plan(const std::vector<Object>& reports, int files) {
  double total = 0;
  for (const Object& report : reports) total += FromCbor<json>(report).at("speed").get<double>();
  std::vector<Object> plan;
  int first = 0;
  double reached = 0;
  for (const Object& object : reports) {
    const json report = FromCbor<json>(object);
    reached += report.at("speed").get<double>();
    const int end = static_cast<int>(files * reached / total + 0.5);
    plan.push_back(ToCbor<json>({{"for", report.at("name")}, {"first", first}, {"end", end}}));
    first = end;
  }
  return plan;
}

}  // namespace

int main() try {
  rankrun::ProcessGroup& world = rankrun::Init();
  const int rank = world.global_rank();
  const std::string name = "worker-" + std::to_string(rank);
  const json report = {{"name", name}, {"speed", 1.5 + rank}};
  const std::vector<Object> reports = rankrun::GatherObject(world, ToCbor(report));
  const std::vector<Object> plan = rank == 0 ? Plan(reports, 100) : std::vector<Object>();
  const json mine = FromCbor<json>(rankrun::ScatterObjects(world, plan));

  // Everybody looks at everybody's part: no file is left out or taken twice.
  int next = 0;
  bool good = mine.at("for") == name;
  for (const Object& object : rankrun::AllGatherObject(world, ToCbor(mine))) {
    const json part = FromCbor<json>(object);
    good = good && part.at("first") == next;
    next = part.at("end").get<int>();
  }
  good = good && next == 100;
  std::printf("rank %d: %s: %s\n", rank, mine.dump().c_str(), good ? "right" : "WRONG");
  rankrun::Destroy();
  return good ? 0 : 1;
} catch (const std::exception& error) {  // of rankrun, or of what is no such report
  std::fprintf(stderr, "reports: %s\n", error.what());
  return 1;
}
