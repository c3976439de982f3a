// Options have names.
#include <chrono>
#include <vector>

#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  using namespace std::chrono_literals;
  std::vector<float> values{1};
  const rankrun::Work work =
      world.AllReduce(values, rankrun::ReduceOp::kSum, {.timeout = 10s, .async = true});
  work.Wait();
  const bool is_right = values[0] == 2;
  rankrun::Destroy();
  return is_right ? 0 : 1;
}
