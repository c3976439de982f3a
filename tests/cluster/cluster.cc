#include "tests/cluster/cluster.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

#include "base/net/socket_address.h"
#include "tests/free_port.h"

namespace rankrun::cluster {
namespace {

using std::chrono::seconds;

constexpr seconds kFaultTime{30};  // in which faults happen
constexpr seconds kLimit{600};     // for the end of the job after that
constexpr milliseconds kMaxStep{500};

// Returns a port that all jobs of this process use in turn.
uint16_t Port() {
  static const int port = test::FreePort();
  return static_cast<uint16_t>(port);
}

agent::JobSpec SpecOf(const Options& options, int number, uint16_t port, bool has_secret) {
  agent::JobSpec spec;
  spec.workers = kWorkersPerNode;
  spec.run_id = "job";
  spec.max_restarts = options.max_restarts;
  spec.restart_pause = milliseconds(100);
  agent::NodesSpec& nodes = spec.nodes.emplace();
  nodes.min = 1;
  nodes.max = options.nodes;
  nodes.endpoints = {{"127.0.0.1", port}};
  nodes.is_host = number == 0;
  nodes.node_name = "n" + std::to_string(number);
  nodes.join_timeout = seconds(20);
  nodes.last_call = seconds(1);
  nodes.node_timeout = kNodeTimeout;
  nodes.finish_timeout = seconds(60);
  if (has_secret) nodes.secret = std::string(32, 's');
  return spec;
}

}  // namespace

Cluster::Cluster(const Options& options)
    : options_(options),
      stage_{.dice = sim::Dice(options.seed), .is_traced = options.is_traced},
      port_(Port()),
      has_secret_(stage_.dice.Chance(50)) {
  if (options.faults == Faults::kWorkers || options.faults == Faults::kAll) {
    stage_.plan.worker_fails_percent = stage_.dice.Below(40);
  }
  stage_.on_peers_lost = [this](int node) {
    for (auto& other : nodes_) {
      if (other->workers() != nullptr && other.get() != nodes_[static_cast<size_t>(node)].get()) {
        other->workers()->LosePeer();
      }
    }
  };
  if (options.faults == Faults::kWorkers) stage_.checker.ExpectWorkersOnly();
  for (int number = 0; number < options.nodes; ++number) AddNode();
}

void Cluster::AddNode() {
  const auto number = static_cast<int>(nodes_.size());
  nodes_.push_back(
      std::make_unique<Node>(stage_, number, SpecOf(options_, number, port_, has_secret_)));
}

// Runs the nodes until none has an event at this instant. Over loopback, the kernel delivers bytes
// before the sender's call returns, unless it is very busy.
void Cluster::Settle() {
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (auto& node : nodes_) {
      if (node->Run()) is_settled = false;
    }
  }
}

bool Cluster::IsOver() const {
  return std::ranges::all_of(nodes_, [](const auto& node) { return node->is_over(); });
}

TimePoint Cluster::Next() const {
  TimePoint next = TimePoint::max();
  if (!stage_.time.empty()) next = stage_.time.next();
  for (const auto& node : nodes_) {
    if (auto wanted = node->next()) next = std::min(next, *wanted);
  }
  return next;
}

// Each 100 ms take a moment of real time, for bytes that the kernel has yet to deliver.
void Cluster::MoveTo(TimePoint next) {
  constexpr milliseconds kLong{100};
  unpolled_ += std::max(next - test::VirtualNow(), Duration::zero());
  if (unpolled_ >= kLong) {
    unpolled_ = Duration::zero();
    std::vector<pollfd> wanted;
    for (const auto& node : nodes_) wanted.push_back({node->poll_fd(), POLLIN, 0});
    if (poll(wanted.data(), wanted.size(), 1) > 0) return;
  }
  test::MoveVirtualTime(std::max(next, test::VirtualNow()));
}

std::string Cluster::Run() {
  const TimePoint limit = test::VirtualNow() + kFaultTime + kLimit;
  PlanFaults();
  stage_.After(kFaultTime, [this] { stage_.is_calm = true; });
  Settle();
  while (!IsOver()) {
    const TimePoint next = std::min(Next(), test::VirtualNow() + kMaxStep);
    if (next >= limit) {
      stage_.checker.Violate("the job does not end");
      break;
    }
    MoveTo(next);
    while (!stage_.time.empty() && stage_.time.next() <= test::VirtualNow()) {
      stage_.time.RunNext();
      Settle();
    }
    Settle();
  }
  std::string text;
  for (const std::string& violation : stage_.checker.violations()) text += violation + "\n";
  return text;
}

void Cluster::PlanFaults() {
  if (options_.faults == Faults::kNone) return;
  const int count = 1 + stage_.dice.Below(4);
  for (int i = 0; i < count; ++i) {
    stage_.After(stage_.dice.Between(0, 20'000), [this] {
      if (!stage_.is_calm) Fault();
    });
  }
}

void Cluster::Fault() {
  fault_count_ += 1;
  switch (options_.faults) {
    case Faults::kNone:
      return;
    case Faults::kBreaks:
    case Faults::kWorkers:
      return Disturb();
    case Faults::kAgents:
      return AnyNode().KillAgent();
    case Faults::kMachines:
      return LoseMachine(1);
    case Faults::kFreezes:
      return AnyNode().Freeze(stage_.dice.Between(100, 12'000));
    case Faults::kAll:
      return FaultOfAnyKind();
  }
}

void Cluster::FaultOfAnyKind() {
  switch (stage_.dice.Below(7)) {
    case 0:
      return LoseMachine(0);
    case 1:
      return AnyNode().KillAgent();
    case 2:
      return AnyNode().Freeze(stage_.dice.Between(100, 12'000));
    case 3:
      return AnyNode().Drain();
    case 4:
      return AnyNode().Close();
    default:
      return BreakConnection();
  }
}

// Nothing of this is a failure.
void Cluster::Disturb() {
  BreakConnection();
  if (stage_.dice.Chance(50)) return;
  if (!nodes_[0]->is_awake()) return;
  nodes_[0]->Freeze(stage_.dice.Between(100, 1'500));
  for (int breaks = stage_.dice.Below(4); breaks > 0; --breaks) {
    stage_.After(stage_.dice.Between(0, 1'500), [this] { BreakConnection(); });
  }
}

// Returns both ends of the connections between members and coordinator.
std::vector<int> Cluster::Connections() const {
  std::vector<int> ends;
  constexpr int kMaxFd = 1024;
  for (int fd = 3; fd < kMaxFd; ++fd) {
    const auto peer = SocketAddress::PeerOf(fd);
    const auto local = SocketAddress::LocalOf(fd);
    if (peer && local && (peer->port() == port_ || local->port() == port_)) ends.push_back(fd);
  }
  return ends;
}

// Breaks a connection in both directions. A reset also loses what its owner has not read yet.
void Cluster::BreakConnection() {
  const std::vector<int> ends = Connections();
  if (ends.empty()) return;
  const int chosen = ends[static_cast<size_t>(stage_.dice.Below(static_cast<int>(ends.size())))];
  const bool is_reset = stage_.dice.Chance(50);
  stage_.Trace("a connection", is_reset ? "is reset" : "breaks");
  stage_.checker.OnBreak();
  if (!is_reset) {
    shutdown(chosen, SHUT_RDWR);
    return;
  }
  const sockaddr nowhere{.sa_family = AF_UNSPEC, .sa_data = {}};
  connect(chosen, &nowhere, sizeof nowhere);
}

// `first`: the lowest number that may be lost. Another machine may take its place.
void Cluster::LoseMachine(size_t first) {
  Node& node = AnyNode(first);
  if (node.is_over()) return;
  node.LoseMachine();
  const bool is_replaced = stage_.dice.Chance(50);
  if (is_replaced) stage_.After(stage_.dice.Between(0, 5'000), [this] { AddNode(); });
}

}  // namespace rankrun::cluster
