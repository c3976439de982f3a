// Integers of any name and bytes are elements.
#include <cstddef>

#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  long long large = 1;
  unsigned long long natural = 2;
  std::byte bits{4};
  world.AllReduce(large);
  world.AllReduce(natural, rankrun::ReduceOp::kMax);
  world.Broadcast(bits, rankrun::GlobalRank{0});
  const bool is_right = large == 2 && natural == 2 && bits == std::byte{4};
  rankrun::Destroy();
  return is_right ? 0 : 1;
}
