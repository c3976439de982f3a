// partner CALL: a worker that repeats CALL until it fails. It prints the time of the
// failure, in nanoseconds of the machine's clock, and the error. Rank 1 prints the
// time and kills itself between two calls. All ranks ignore SIGTERM.

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

// Writes with one system call, so that nothing is lost if the process is killed.
void Say(const std::string& line) {
  if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    _exit(98);
  }
}

std::string NowInNs() {
  auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return std::to_string(std::chrono::nanoseconds(since_boot).count());
}

std::function<void(ProcessGroup&)> CallOf(const std::string& name) {
  const std::map<std::string, std::function<void(ProcessGroup&)>> calls = {
      {"all_reduce", [values = std::vector<float>(1 << 20)](
                         ProcessGroup& world) mutable { world.AllReduce(values); }},
      {"barrier", [](ProcessGroup& world) { world.Barrier(); }},
      // Each rank sends to the next, so that only one waits for the dead rank.
      {"send_recv",
       [value = std::vector<int>(1)](ProcessGroup& world) mutable {
         int rank = world.global_rank(), ranks = world.world_size();
         auto sent = world.ISend(value, GlobalRank{(rank + 1) % ranks});
         world.Recv(value, GlobalRank{(rank + ranks - 1) % ranks});
         sent.Wait();
       }},
  };
  return calls.at(name);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  signal(SIGTERM, SIG_IGN);
  auto call = CallOf(argv[1]);
  ProcessGroup& world = rankrun::Init();
  bool dies = world.global_rank() == 1;
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
