// Objects: each rank sends rank 0 a report of any size. Rank 0 makes a plan
// from them and sends each rank its part. They are JSON encoded as CBOR, which
// programs in other languages can read.
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

// Divides `files` among the ranks; a faster rank gets more.
std::vector<Object> Plan(const std::vector<Object>& reports, int files) {
  double total = 0;
  for (const Object& report : reports) total += FromCbor<json>(report).at("speed").get<double>();
  std::vector<Object> plan;
  int first = 0;
  double reached = 0;
  for (const Object& object : reports) {
    json report = FromCbor<json>(object);
    reached += report.at("speed").get<double>();
    int end = static_cast<int>(files * reached / total + 0.5);
    plan.push_back(ToCbor<json>({{"for", report.at("name")}, {"first", first}, {"end", end}}));
    first = end;
  }
  return plan;
}

}  // namespace

int main() try {
  rankrun::ProcessGroup& world = rankrun::Init();
  int rank = world.global_rank();
  std::string name = "worker-" + std::to_string(rank);
  json report = {{"name", name}, {"speed", 1.5 + rank}};
  std::vector<Object> reports = rankrun::GatherObject(world, ToCbor(report));
  std::vector<Object> plan = rank == 0 ? Plan(reports, 100) : std::vector<Object>();
  json mine = FromCbor<json>(rankrun::ScatterObjects(world, plan));

  // Every rank checks all parts: no file is left out or taken twice.
  int next = 0;
  bool good = mine.at("for") == name;
  for (const Object& object : rankrun::AllGatherObject(world, ToCbor(mine))) {
    json part = FromCbor<json>(object);
    good = good && part.at("first") == next;
    next = part.at("end").get<int>();
  }
  good = good && next == 100;
  std::printf("rank %d: %s: %s\n", rank, mine.dump().c_str(), good ? "right" : "WRONG");
  rankrun::Destroy();
  return good ? 0 : 1;
} catch (const std::exception& error) {  // from rankrun, or from an invalid report
  std::fprintf(stderr, "reports: %s\n", error.what());
  return 1;
}
