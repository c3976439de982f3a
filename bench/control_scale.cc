// control_scale [AGENTS]: connects that many agents without workers, as real
// sockets of one process, to a coordinator in another process. Prints the time
// until all have joined, the time until all have received the start, and the
// coordinator's heap per agent.

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <variant>
#include <vector>

#include "agent/control/control_link.h"
#include "agent/coordination/member.h"
#include "agent/job/job_spec.h"
#include "agent/nodes/control_codec.h"
#include "agent/nodes/coordinator_host.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_timer.h"
#include "bench/timing.h"

namespace rankrun::bench {
namespace {

using agent::Hello;

constexpr std::chrono::seconds kLimit{60};
constexpr double kTargetMilliseconds = 2000;
constexpr double kTargetBytes = 4096;

agent::NodesSpec NodesOf(int count, uint16_t port) {
  agent::NodesSpec nodes;
  nodes.min = nodes.max = count;
  nodes.endpoints = {{"127.0.0.1", port}};
  return nodes;
}

// An agent whose workers run as soon as they are allowed to.
class Agent {
 public:
  Agent(Loop& loop, const agent::NodesSpec& nodes, uint64_t id)
      : loop_(loop),
        core_({}, About(nodes, id), Now()),
        own_addresses_{"127.0.0.1", "::1",
                       "10.0." + std::to_string(id / 256) + "." + std::to_string(id % 256),
                       "fe80::aaaa:bbff:fe00:" + std::to_string(id)},
        link_(loop,
              {.endpoints = nodes.endpoints,
               .job_id = "bench",
               .secret = "secret",
               .make_hello = [this] { return Encode(agent::MemberMessage(core_.hello())); }},
              {.on_up = [this] { Step(agent::LinkUp{}); },
               .on_message = [this](const std::string& bytes) { OnMessage(bytes); },
               .on_down = [this](const Error& why) { Step(agent::LinkDown{why.message}); },
               .on_failed = {}}),
        tick_(loop, [this] { Step(agent::MemberTick{}); }) {}

  bool has_joined() const { return core_.phase() != agent::MemberPhase::kJoining; }
  bool runs() const { return core_.phase() == agent::MemberPhase::kRunning; }

 private:
  static TimePoint Now() { return std::chrono::steady_clock::now(); }

  static Hello About(const agent::NodesSpec& nodes, uint64_t id) {
    Hello hello;
    hello.node = id;
    hello.name = "node-" + std::to_string(id);
    hello.slots = 8;
    hello.min_nodes = hello.max_nodes = nodes.max;
    hello.addresses = {"10.0.0." + std::to_string(id % 256)};
    return hello;
  }

  void OnMessage(const std::string& bytes) {
    auto message = agent::DecodeCoordinatorMessage(bytes);
    if (message) Step(agent::MessageFromCoordinator{std::move(*message)});
  }

  void Step(const agent::MemberEvent& event) {
    for (const agent::MemberAction& action : core_.Step(event, Now())) {
      if (const auto* send = std::get_if<agent::Send>(&action)) {
        link_.Send(Encode(send->message));
      }
      if (const auto* make = std::get_if<agent::MakeReady>(&action)) {
        loop_.Post([this, round = make->round.round] {
          Step(agent::Ready{round, 1, own_addresses_});
        });
      }
    }
    tick_.Start(std::max(Duration::zero(), core_.deadline() - Now()));
  }

  Loop& loop_;
  agent::Member core_;
  const std::vector<std::string> own_addresses_;
  agent::ControlLink link_;
  Timer tick_;
};

struct Outcome {
  double joined = 0;  // milliseconds
  double told = 0;
};

// Runs in its own process until it is killed.
bool RunAgents(int count, uint16_t port, int outcome_to) {
  Loop loop;
  agent::NodesSpec nodes = NodesOf(count, port);
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Agent>> agents;
  for (int i = 0; i < count; ++i) {
    agents.push_back(std::make_unique<Agent>(loop, nodes, static_cast<uint64_t>(i) + 1));
  }
  auto until_all = [&](bool (Agent::*is_so)() const) {
    size_t next = 0;  // all agents before it fulfil the condition
    loop.RunUntil(
        [&] {
          while (next < agents.size() && ((*agents[next]).*is_so)()) ++next;
          return next == agents.size();
        },
        kLimit);
    return Milliseconds(std::chrono::steady_clock::now() - begin).count();
  };
  Outcome outcome;
  outcome.joined = until_all(&Agent::has_joined);
  outcome.told = until_all(&Agent::runs);
  bool all_run = std::ranges::all_of(agents, [](const auto& agent) { return agent->runs(); });
  if (!all_run || write(outcome_to, &outcome, sizeof outcome) != sizeof outcome) return false;
  loop.RunUntil([] { return false; }, 3 * kLimit);
  return true;
}

double HeapBytes() { return static_cast<double>(mallinfo2().uordblks); }

void Print(int count, const Outcome& outcome, double heap_bytes) {
  std::printf("%d agents, as sockets of one process\n", count);
  std::printf("  all have joined             %8.1f ms (target: %.0f ms)\n", outcome.joined,
              kTargetMilliseconds);
  std::printf("  all have received the start %8.1f ms\n", outcome.told);
  std::printf("  coordinator's heap for each %8.0f bytes (target: %.0f bytes)\n",
              heap_bytes / count, kTargetBytes);
}

// Sends the port to the agents' process, runs until all agents run, and
// receives their times.
bool RunCoordinator(int count, int port_to, int outcome_from) {
  Loop loop;
  agent::JobSpec spec;
  spec.nodes = NodesOf(count, 0);
  spec.nodes->secret = "secret";
  spec.run_id = "bench";
  double before = HeapBytes();
  std::string kept;  // in a job it is stored elsewhere
  agent::CoordinatorHost host(
      loop, spec, 1, std::nullopt,
      {.keep = [&](const agent::CoordinatorRecord& record) { kept = Encode(record); },
       .on_retired = [] {}});
  if (auto listening = host.Listen(0); !listening) {
    std::fprintf(stderr, "control_scale: %s\n", listening.error().message.c_str());
    return false;
  }
  uint16_t port = host.port();
  if (write(port_to, &port, sizeof port) != sizeof port) return false;
  Outcome outcome;
  ssize_t got = -1;
  auto has_answer = [&] {
    if (got < 0) got = read(outcome_from, &outcome, sizeof outcome);
    return got >= 0;
  };
  loop.RunUntil(has_answer, 3 * kLimit);
  if (got != sizeof outcome) {
    std::fputs("control_scale: not all agents received the start\n", stderr);
    return false;
  }
  Print(count, outcome, HeapBytes() - before);
  return true;
}

int AgentsMain(int count, int port_from, int outcome_to) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  uint16_t port = 0;
  if (read(port_from, &port, sizeof port) != sizeof port) return 1;
  return RunAgents(count, port, outcome_to) ? 0 : 1;
}

bool RaiseDescriptors(int count) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  rlim_t wanted = static_cast<rlim_t>(count) + 100;
  if (limit.rlim_cur >= wanted) return true;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == wanted;
}

int Main(int argc, char** argv) {
  int count = argc > 1 ? std::atoi(argv[1]) : 1000;
  if (count < 1 || argc > 2) {
    std::fputs("usage: control_scale [AGENTS]\n", stderr);
    return 2;
  }
  if (!RaiseDescriptors(count)) {
    std::fprintf(stderr, "control_scale: %d agents need as many descriptors (ulimit -n)\n", count);
    return 1;
  }
  signal(SIGPIPE, SIG_IGN);
  int port[2];
  int outcome[2];
  if (pipe2(port, O_CLOEXEC) != 0 || pipe2(outcome, O_CLOEXEC | O_NONBLOCK) != 0) return 1;
  pid_t agents = fork();
  if (agents == 0) {
    close(port[1]);
    _exit(AgentsMain(count, port[0], outcome[1]));
  }
  close(outcome[1]);
  bool is_good = agents > 0 && RunCoordinator(count, port[1], outcome[0]);
  if (agents > 0) {
    kill(agents, SIGKILL);
    waitpid(agents, nullptr, 0);
  }
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) { return rankrun::bench::Main(argc, argv); }
