// Any duration is a time-out.
#include <chrono>
#include <vector>

#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  using namespace std::chrono_literals;
  std::vector<float> values{1};
  world.AllReduce(values, rankrun::ReduceOp::kSum, 10s);
  world.AllReduce(values, 1min);
  world.Barrier(0.5h);
  const bool is_right = values[0] == 4;
  rankrun::Destroy();
  return is_right ? 0 : 1;
}
