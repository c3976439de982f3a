#include <rankrun/distributed.h>

#include "tests/comm/conformance.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

// Returns `error` unless it has all of `parts`.
std::string WithoutAll(const std::string& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (error.find(part) == std::string::npos) return "no \"" + part + "\" in: " + error;
  }
  return "";
}

// A fork of each rank calls the collective first, then the rank.
std::string Fork(ProcessGroup& world, const Json& vector) {
  Elements elements(vector, OfRank(vector.at("in"), world));
  ChildProcess child([&] { return ErrorOf([&] { world.AllReduce(elements.tensor()); }); });
  std::string wrong = WithoutAll(child.Text(), {"DistError: ", "is a fork of "});
  world.AllReduce(elements.tensor());
  return wrong + elements.Differ(OfRank(vector.at("out"), world));
}

// The rank `late` calls the collective when the calls of the others have timed out.
std::string Late(ProcessGroup& world, const Json& vector) {
  ProcessGroup& group = NewGroup({});
  const GlobalRank late{vector.at("late")};
  Elements elements(vector, OfRank(vector.at("in"), world));
  auto call = [&](std::chrono::milliseconds timeout) {
    return ErrorOf([&] { group.AllReduce(elements.tensor(), timeout); });
  };
  std::vector<int> done{0};
  if (world.global_rank() != late.value) {
    std::string wrong = WithoutAll(call(std::chrono::milliseconds(100)), {"AllReduce #1"});
    world.Send(done, late);
    return wrong;
  }
  for (int other = 1; other < world.world_size(); ++other) world.Recv(done);
  return WithoutAll(call(std::chrono::minutes(1)), {"AllReduce #1"});
}

// The rank `aborts` ends its own receive, and the call in which the others wait for it.
std::string AbortCalls(ProcessGroup& world, const Json& vector) {
  ProcessGroup& group = NewGroup({});
  Elements elements(vector, OfRank(vector.at("in"), world));
  const int aborting = vector.at("aborts");
  if (world.global_rank() != aborting) {
    return WithoutAll(ErrorOf([&] { group.AllReduce(elements.tensor()); }),
                      {"rank " + std::to_string(aborting) + " aborted the group: enough"});
  }
  const Work work = group.IRecv(elements.tensor());
  Abort(group, "enough");
  return WithoutAll(ErrorOf([&] { work.Wait(); }), {"aborted the group: enough"});
}

}  // namespace

const std::map<std::string, VectorRun>& FailureRuns() {
  static const std::map<std::string, VectorRun> runs{
      {"fork", Fork}, {"late", Late}, {"abort", AbortCalls}};
  return runs;
}

}  // namespace rankrun::comm
