#include "tests/sim/world.h"

#include <algorithm>
#include <string_view>

namespace rankrun::sim {
namespace {

constexpr std::chrono::seconds kFaultyTime{15};
constexpr std::string_view kFaultNames[] = {"none",  "failures", "blips", "silence",
                                            "stuck", "sick",     "all"};  // of Faults

}  // namespace

World::World(const Options& options)
    : options_(options), stage_(options.seed), network_(stage_), checker_(stage_) {
  stage_.is_traced = options.is_traced;
  Choose(options);
  checker_.CountStaying([this](int world) {
    if (CoordinatorsNode().is_leaving()) return -1;
    auto stays = [&](const auto& node) { return node->is_linked_to(world) && !node->is_leaving(); };
    return static_cast<int>(std::ranges::count_if(nodes_, stays));
  });
  for (int i = 0; i < options.nodes; ++i) {
    int host = next_host_++;
    bool is_first = i == 0;
    bool is_late = options.faults == Faults::kAll && stage_.dice.Chance(30);
    stage_.time.After(stage_.dice.Between(0, is_late ? 8'000 : 50),
                      [this, host, is_first] { StartNode(host, is_first); });
  }
  PlanFaults();
}

void World::Choose(const Options& options) {
  Plan& plan = stage_.plan;
  agent::CoordinatorPolicy& policy = plan.policy;
  Dice& dice = stage_.dice;
  int spares = options.faults == Faults::kAll && options.nodes > 2 ? dice.Below(2) : 0;
  policy.max_nodes = options.max > 0 ? options.max : options.nodes - spares;
  policy.min_nodes = options.min > 0 ? options.min : 1 + dice.Below(policy.max_nodes);
  constexpr int kTimeouts[] = {1'500, 3'000, 10'000};
  policy.node_timeout = milliseconds(kTimeouts[dice.Below(3)]);
  policy.join_timeout = milliseconds(20'000);
  policy.last_call = dice.Between(50, 2'000);
  policy.finish_timeout = milliseconds(10'000);
  policy.restart = {.max_restarts = dice.Below(4),
                    .first_pause = milliseconds(100),
                    .longest_pause = milliseconds(1'000),
                    .healthy_after = milliseconds(2'000)};
  plan.slow_death_percent = dice.Chance(50) ? 50 : 5;
  plan.stubborn_percent = dice.Below(20);
  plan.longest_run = dice.Between(50, 6'000);
  ChooseFaults();
  if (!options.loses_one) return;
  checker_.SetPure(false);
  policy.min_nodes = policy.max_nodes - 1;
  policy.node_timeout = milliseconds(10'000);
  plan.shortest_run = milliseconds(5'000);
  plan.longest_run = milliseconds(6'000);
}

void World::ChooseFaults() {
  Plan& plan = stage_.plan;
  agent::CoordinatorPolicy& policy = plan.policy;
  switch (options_.faults) {
    case Faults::kNone:
    case Faults::kBlips:
      checker_.SetPure();
      policy.min_nodes = policy.max_nodes;
      policy.restart.max_restarts = 0;
      return;
    case Faults::kFailures:
      checker_.SetPure();
      policy.min_nodes = policy.max_nodes;
      policy.node_timeout = milliseconds(10'000);
      plan.fails_percent = 20;
      return;
    case Faults::kSilence:
      checker_.SetPartitions();
      policy.node_timeout = milliseconds(1'500);
      policy.min_nodes = 1;
      plan.longest_run = milliseconds(8'000);
      plan.slow_death_percent = 80;
      return;
    case Faults::kStuck:
      policy.min_nodes = 1;
      policy.node_timeout = milliseconds(1'500);
      policy.restart.max_restarts = 100;
      plan.stuck_percent = 30;
      plan.shortest_run = milliseconds(1'000);
      plan.longest_run = milliseconds(6'000);
      plan.longest_run = milliseconds(6'000);
      return;
    case Faults::kSick:
      checker_.SetPure();
      policy.max_nodes = std::max(1, options_.nodes - 1);
      policy.min_nodes = policy.max_nodes;
      policy.replace_after = 1 + stage_.dice.Below(3);
      policy.restart.max_restarts = policy.replace_after;
      plan.sick_node = stage_.dice.Below(options_.nodes);
      plan.shortest_run = milliseconds(500);
      plan.longest_run = milliseconds(3'000);
      return;
    case Faults::kAll:
      checker_.SetPartitions();
      if (stage_.stuck_dice.Chance(20)) plan.stuck_percent = 20;
      plan.fails_percent = stage_.dice.Below(20);
      plan.hangs_percent = stage_.dice.Below(5);
      plan.claims_percent = stage_.dice.Chance(20) ? 50 : 0;
      if (stage_.dice.Chance(10)) policy.on_lost_node = agent::LostNode::kStop;
      return;
  }
}

void World::StartNode(int host, bool has_coordinator) {
  NodeSetup setup{.number = static_cast<int>(nodes_.size()),
                  .host = host,
                  .coordinator_host = coordinator_host_};
  if (has_coordinator && (worlds_ == 0 || CoordinatorsNode().is_over())) {
    setup.world = ++worlds_;
    coordinators_node_ = setup.number;
  }
  if (stage_.dice.Chance(stage_.plan.claims_percent)) {
    setup.claimed_rank = stage_.dice.Below(options_.nodes);
  }
  stage_.hosts[host].is_dead = false;
  nodes_.push_back(std::make_unique<Node>(stage_, network_, checker_, setup));
  nodes_.back()->StartAgent();
}

Node* World::AnyNode() {
  if (nodes_.empty()) return nullptr;
  Node* node =
      nodes_[static_cast<size_t>(stage_.dice.Below(static_cast<int>(nodes_.size())))].get();
  bool stands_still = stage_.hosts[node->host()].frozen_until > stage_.time.now();
  return node->is_over() || stands_still ? nullptr : node;
}

// --- Faults ---

void World::PlanFaults() {
  if (options_.loses_one)
    stage_.time.After(milliseconds(3'500), [this] { LoseMachine(*nodes_.at(1)); });
  if (options_.faults == Faults::kNone || options_.faults == Faults::kSick) return CalmDown();
  int count = stage_.dice.Below(8);
  auto most = static_cast<int>(milliseconds(kFaultyTime).count());
  if (stage_.dice.Chance(50)) most /= 4;  // faults close together
  for (int i = 0; i < count; ++i) {
    stage_.time.After(stage_.dice.Between(0, most), [this] { Fault(); });
  }
  stage_.time.After(kFaultyTime, [this] { CalmDown(); });
}

void World::CalmDown() {
  stage_.is_calm = true;
  stage_.Trace("", [] { return "no more faults from here on"; });
}

void World::Fault() {
  Dice& dice = stage_.dice;
  Node* node = AnyNode();
  if (node == nullptr) return;
  Duration timeout = stage_.plan.policy.node_timeout;
  if (options_.faults == Faults::kBlips) return network_.BreakOne(milliseconds(300));
  if (options_.faults == Faults::kSilence) {
    return dice.Chance(70) ? Partition() : node->StopAgent(dice.Between(500, 4'000));
  }
  if (options_.faults == Faults::kStuck) return node->FailWorkers(true);
  if (options_.faults == Faults::kFailures) {
    if (dice.Chance(50)) return node->CrashAgent("kill -9");
    return node->FailWorkers(true);
  }
  auto timeout_ms = static_cast<int>(std::chrono::duration_cast<milliseconds>(timeout).count());
  switch (dice.Below(20)) {
    case 0:
      return node->CrashAgent("kill -9");
    case 1:
    case 2:
    case 3:
      return node->CrashAfter(dice.Below(12));
    case 4:
      return CoordinatorsNode().CrashAfter(dice.Below(30));
    case 5:
      return node->StopAgent(dice.Between(10, timeout_ms * 3 / 2));
    case 6:
      return node->StopAgent(dice.Between(1, 100));
    case 7:
      return LoseMachine(*node);
    case 8:
      return dice.Chance(50) ? LoseEndpoint() : network_.BreakAll(milliseconds(1'000));
    case 9:
      return dice.Chance(50) ? node->KillGuardian() : node->FailWorkers(false);
    case 10:
    case 11:
    case 12:
      return Partition();
    case 13:
    case 14:
      return network_.BreakOne(milliseconds(dice.Below(2) == 0 ? 20 : 3'000));
    case 15:
      return StandStill(*node);
    case 16:
      return dice.Chance(70) ? node->Drain() : dice.Chance(30) ? node->Close() : void();
    case 17:
      return StartNode(dice.Chance(30) ? node->host() : next_host_++, false);
    default:
      return node->FailWorkers(dice.Chance(80));
  }
}

void World::LoseMachine(Node& node) {
  if (node.host() == coordinator_host_) return LoseEndpoint();
  stage_.hosts[node.host()].is_dead = true;
  for (const auto& other : nodes_) {
    if (other->host() == node.host()) other->LoseHost();
  }
  if (!stage_.dice.Chance(70)) return;
  stage_.time.After(stage_.dice.Between(1, 8'000), [this] { StartNode(next_host_++, false); });
}

// Loses the machine of the endpoint; another one without a record may replace it.
void World::LoseEndpoint() {
  if (is_endpoint_lost_ || worlds_ == 0) return;
  is_endpoint_lost_ = true;
  if (stage_.dice.Chance(70)) {
    stage_.hosts[coordinator_host_].is_dead = true;
    for (const auto& other : nodes_) {
      if (other->host() == coordinator_host_) other->LoseHost();
    }
  } else {
    CoordinatorsNode().KillGuardian();
  }
  if (!stage_.dice.Chance(80)) return;
  stage_.time.After(stage_.dice.Between(1, 4'000), [this] { StartNode(coordinator_host_, true); });
}

void World::Partition() {
  Dice& dice = stage_.dice;
  int other = dice.Below(next_host_);
  int host = dice.Chance(70) ? coordinator_host_ : dice.Below(next_host_);
  if (host == other) return;
  auto timeout = static_cast<int>(stage_.plan.policy.node_timeout.count());
  Duration how_long =
      dice.Chance(50) ? dice.Between(1, timeout) : dice.Between(timeout / 2, 2 * timeout);
  int kind = dice.Below(3);
  stage_.Trace("", [&] {
    return "no bytes " +
           std::string(kind == 0   ? "between"
                       : kind == 1 ? "to"
                                   : "from") +
           " host " + std::to_string(other) + " and host " + std::to_string(host);
  });
  if (kind != 2) network_.Block(host, other, how_long);
  if (kind != 1) network_.Block(other, host, how_long);
}

void World::StandStill(Node& node) {
  const agent::CoordinatorPolicy& policy = stage_.plan.policy;
  auto margin = static_cast<int>(policy.node_timeout.count() / 6);
  bool is_long = stage_.dice.Chance(30);
  Duration how_long =
      is_long ? stage_.dice.Between(margin, 12 * margin) : stage_.dice.Between(1, margin);
  Host& host = stage_.hosts[node.host()];
  TimePoint now = stage_.time.now();
  bool is_again = host.frozen_until + 2 * policy.node_timeout > now;
  host.frozen_until = now + how_long;
  host.stood_still += how_long;
  if (is_long || is_again) host.long_frozen_until = host.frozen_until;
  for (const auto& other : nodes_) {
    if (other->host() == node.host()) checker_.OnGone(other->number());
  }
  stage_.Trace(node.name(), [] { return "its machine stands still for a while"; });
}

// --- The run ---

bool World::IsOver() const {
  if (nodes_.empty()) return false;
  return std::ranges::all_of(nodes_,
                             [](const auto& node) { return node->is_over() || node->is_stuck(); });
}

Result World::Run() {
  constexpr uint64_t kMaxAtOnce = 100'000;
  const agent::CoordinatorPolicy& policy = stage_.plan.policy;
  TimePoint begin = stage_.time.now();
  // The longest case: the job waits for nodes twice, a worker hangs, every restart
  // has its pause.
  Duration bound = kFaultyTime + 3 * policy.join_timeout + 2 * policy.finish_timeout +
                   6 * (policy.node_timeout + policy.kill_bound + stage_.plan.grace) +
                   std::chrono::seconds(30);
  bool was_over = false;
  while (stage_.violation.empty() && !stage_.time.empty()) {
    was_over = IsOver();
    if (was_over && stage_.is_calm) break;
    if (stage_.time.now() - begin > bound) {
      stage_.Violate("the job is not over in its time");
    } else if (stage_.time.at_this_instant() > kMaxAtOnce) {
      stage_.Violate("time stands still: a timer of 0 ms starts again and again");
    } else {
      stage_.time.RunNext();
    }
  }
  Result result{.events = stage_.time.events(),
                .rounds = checker_.rounds(),
                .verdict = checker_.verdict(),
                .took = stage_.time.now() - begin};
  CheckEnd(result);
  result.violation = stage_.violation;
  return result;
}

void World::CheckEnd(Result& result) {
  if (!stage_.violation.empty()) return;
  if (!IsOver()) stage_.Violate("no event is left, but the job is not over");
  bool is_easy = options_.faults == Faults::kNone || options_.faults == Faults::kBlips;
  is_easy &= checker_.is_pure();
  if (is_easy && result.verdict != 0) stage_.Violate("the job did not succeed");
  bool are_all_stuck = std::ranges::all_of(nodes_, [](const auto& n) { return n->is_stuck(); });
  if (options_.faults == Faults::kStuck && !are_all_stuck && result.verdict != 0) {
    stage_.Violate("a process that does not die has held up the job");
  }
  if (is_easy && result.rounds != 1) stage_.Violate("a blip began a new attempt");
  if (options_.faults == Faults::kSick && result.verdict != 0) {
    stage_.Violate("a node that fails each time has ended the job, although there was a spare");
  }
}

Result Simulate(const Options& options) { return World(options).Run(); }

std::optional<Faults> FaultsNamed(const std::string& name) {
  auto found = std::ranges::find(kFaultNames, name);
  if (found == std::end(kFaultNames)) return std::nullopt;
  return static_cast<Faults>(found - std::begin(kFaultNames));
}

std::string NameOf(Faults faults) { return std::string(kFaultNames[static_cast<size_t>(faults)]); }

std::string CommandLine(const Options& options) {
  std::string line = "sim --seed " + std::to_string(options.seed) + " --nodes " +
                     std::to_string(options.nodes) + " --faults " + NameOf(options.faults);
  if (options.min > 0) line += " --min " + std::to_string(options.min);
  if (options.max > 0) line += " --max " + std::to_string(options.max);
  if (options.loses_one) line += " --lose-one";
  return line + " --trace";
}

}  // namespace rankrun::sim
