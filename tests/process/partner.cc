// partner CALL: a worker that calls CALL again and again until that fails, and
// says when, by the machine's clock in nanoseconds, and with what words. Rank 1
// kills itself amid its calls, and says when. SIGTERM is taken by none.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

namespace {

using rankrun::GlobalRank;
using rankrun::ProcessGroup;

constexpr int kCallsBeforeDeath = 20;

// In one piece, also in a killed process.
void Say(const std::string& line) {
  if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    _exit(98);
  }
}

std::string NowInNs() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return std::to_string(std::chrono::nanoseconds(since_boot).count());
}

std::function<void(ProcessGroup&)> CallOf(const std::string& name) {
  const std::map<std::string, std::function<void(ProcessGroup&)>> calls = {
      {"all_reduce", [values = std::vector<float>(1 << 20)](
                         ProcessGroup& world) mutable { world.AllReduce(values); }},
      {"barrier", [](ProcessGroup& world) { world.Barrier(); }},
      // Each to the next one, so that not all wait for the dead one.
      {"send_recv",
       [value = std::vector<int>(1)](ProcessGroup& world) mutable {
         const int rank = world.global_rank(), ranks = world.world_size();
         auto sent = world.ISend(value, GlobalRank((rank + 1) % ranks));
         world.Recv(value, GlobalRank((rank + ranks - 1) % ranks));
         sent.Wait();
       }},
  };
  return calls.at(name);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  signal(SIGTERM, SIG_IGN);
  const auto call = CallOf(argv[1]);
  ProcessGroup& world = rankrun::Init();
  const bool dies = world.global_rank() == 1;
  try {
    for (int calls = 0;; ++calls) {
      if (dies && calls == kCallsBeforeDeath) {
        Say("died " + NowInNs() + "\n");
        raise(SIGKILL);
      }
      call(world);
    }
  } catch (const rankrun::DistError& error) {
    Say("heard " + NowInNs() + " " + error.what() + "\n");
  }
}
