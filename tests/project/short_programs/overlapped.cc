// Asynchronous calls without other options.
#include <vector>

#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  std::vector<float> values{1}, others{2};
  const rankrun::Work first = world.AllReduce(values, rankrun::kAsync);
  const rankrun::Work second = world.AllReduce(others, rankrun::ReduceOp::kMax, rankrun::kAsync);
  second.Wait();
  first.Wait();
  const bool is_right = values[0] == 2 && others[0] == 2;
  rankrun::Destroy();
  return is_right ? 0 : 1;
}
