// A worker with PyTorch's library in its process, whose Gloo is not the
// plug-in's. Exits with 0 if the library is loaded and the plug-in computes the
// right results.

#include <link.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

namespace {

// Returns whether a library of that name is loaded.
bool IsLoaded(const char* name) {
  auto found = dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* wanted) {
        return std::strstr(info->dlpi_name, static_cast<const char*>(wanted)) == nullptr ? 0 : 1;
      },
      const_cast<char*>(name));
  return found == 1;
}

std::string Compute(rankrun::ProcessGroup& world) {
  if (world.backend() != "gloo") return "the backend is " + world.backend();
  for (size_t count : {1U, 100'000U}) {
    std::vector<int64_t> values(count, world.global_rank() + 1);
    world.AllReduce(values);
    world.Barrier();
    if (values != std::vector<int64_t>(count, 3)) return "AllReduce gave a wrong sum";
  }
  return "";
}

}  // namespace

int main() {
  std::string wrong = IsLoaded("/libtorch_cpu.so") ? "" : "libtorch_cpu is not loaded";
  try {
    auto& world = rankrun::Init({.timeout = std::chrono::minutes(1), .backend = "gloo"});
    wrong += Compute(world);
    rankrun::Destroy();
  } catch (const std::exception& error) {
    wrong += error.what();
  }
  if (!wrong.empty()) std::fprintf(stderr, "beside_torch: %s\n", wrong.c_str());
  return wrong.empty() ? 0 : 1;
}
