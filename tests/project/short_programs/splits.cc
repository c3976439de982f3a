// Splits are integers of any type.
#include <vector>

#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  std::vector<int> rows{1, 2, 3}, received(world.global_rank() == 0 ? 2 : 4);
  const std::vector<short> from_each(2, static_cast<short>(1 + world.global_rank()));
  world.AllToAllSingle(received, rows, from_each, {1, 2});
  const bool is_right = received.back() == (world.global_rank() == 0 ? 1 : 3);
  rankrun::Destroy();
  return is_right ? 0 : 1;
}
