// Arrays and spans of any extent are tensors.
#include <array>
#include <span>

#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  std::array<float, 2> array{1, 2};
  float plain[] = {3, 4, 5};
  world.AllReduce(array);
  world.AllReduce(plain);
  world.AllReduce(std::span<float, 3>(plain).first<1>());
  const bool is_right = array[1] == 4 && plain[0] == 12 && plain[2] == 10;
  rankrun::Destroy();
  return is_right ? 0 : 1;
}
