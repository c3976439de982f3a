// A list of tensors may be written in the call.
#include <vector>

#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  std::vector<int> first(1), second(1);
  const std::vector<int> mine{10 + world.global_rank()};
  world.AllGather({first, second}, mine);
  const bool is_right = first[0] == 10 && second[0] == 11;
  rankrun::Destroy();
  return is_right ? 0 : 1;
}
