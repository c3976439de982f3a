#include "agent/nodes/job_health.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace rankrun::agent {
namespace {

constexpr Duration kFreshFor = std::chrono::seconds(4);
constexpr Duration kBetweenOrders = std::chrono::seconds(1);
constexpr Duration kMaxBetweenLooks = std::chrono::seconds(2);  // while a node is silent

HangPolicy WithGaps(HangPolicy policy) {
  policy.looks_always = false;
  return policy;
}

}  // namespace

JobHealth::JobHealth(HangPolicy policy) : watch_(WithGaps(policy)) {}

void JobHealth::BeginRound(int round, TimePoint now) {
  if (round == round_) return;  // each node gets the message that begins it
  round_ = round;
  nodes_.clear();
  new_nodes_ = 0;
  looked_at_.reset();
  wanted_at_.reset();
  incomplete_since_.reset();
  comparison_.reset();
  watch_.BeginAttempt(now);
}

void JobHealth::Keep(uint64_t node, NodeSamples samples, TimePoint now) {
  Forget(node);
  nodes_.emplace(node, Node{std::move(samples), now});
  new_nodes_ += 1;
}

void JobHealth::Forget(uint64_t node) {
  auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  if (found->second.is_new) new_nodes_ -= 1;
  nodes_.erase(found);
}

bool JobHealth::IsTimeToLook(TimePoint now) const {
  return !looked_at_ || new_nodes_ == nodes_.size() || now - *looked_at_ >= kMaxBetweenLooks;
}

std::vector<HealthOrder> JobHealth::OnSamples(uint64_t node, int round, NodeSamples samples,
                                              TimePoint now) {
  std::vector<HealthOrder> orders;
  if (round < round_) return orders;
  BeginRound(round, now);  // of which this coordinator has not seen the beginning
  Keep(node, std::move(samples), now);
  // Nobody has waited for a while, so that nobody has sent samples.
  if (wanted_at_ && now - *wanted_at_ > kFreshFor) incomplete_since_.reset();
  if (!wanted_at_ || now - *wanted_at_ >= kBetweenOrders) {
    wanted_at_ = now;
    orders.emplace_back(HealthWanted{round});
  }
  if (IsTimeToLook(now)) Judge(now, orders);
  return orders;
}

// Returns nothing unless there is a fresh sample of each worker of the job.
std::optional<std::vector<WorkerSample>> JobHealth::AllWorkers(TimePoint now) const {
  std::vector<WorkerSample> all;
  std::vector<WaitingClient> clients;
  int world_size = 0;
  for (const auto& [id, node] : nodes_) {
    if (now - node.received > kFreshFor) return std::nullopt;
    world_size = node.samples.world_size;
    std::ranges::copy(node.samples.workers, std::back_inserter(all));
    std::ranges::copy(node.samples.clients, std::back_inserter(clients));
  }
  std::ranges::sort(all, {}, &WorkerSample::global_rank);
  bool has_twice = std::ranges::adjacent_find(all, {}, &WorkerSample::global_rank) != all.end();
  if (has_twice || all.size() != static_cast<size_t>(world_size)) return std::nullopt;
  AssignStoreWaits(clients, all);
  return all;
}

// Waits do not count while samples are missing for long: a node may be stopped by its user.
void JobHealth::Judge(TimePoint now, std::vector<HealthOrder>& orders) {
  looked_at_ = now;
  for (auto& [id, node] : nodes_) node.is_new = false;
  new_nodes_ = 0;
  auto workers = AllWorkers(now);
  if (!workers) {
    if (!incomplete_since_) incomplete_since_ = now;
    return;
  }
  auto incomplete_since = std::exchange(incomplete_since_, std::nullopt);
  if (incomplete_since && now - *incomplete_since > kFreshFor) watch_.StartOver(now);
  HangFindings findings = watch_.Look(*std::move(workers), now);
  for (std::string& notice : findings.notices) orders.emplace_back(HangNotice{std::move(notice)});
  if (findings.verdict) Conclude(*std::move(findings.verdict), now, orders);
}

std::string JobHealth::AwaitedEnd(TimePoint now) const {
  if (looked_at_ != now || incomplete_since_) return "";
  return watch_.AwaitedEnd().value_or("");
}

std::map<uint64_t, std::set<int>> JobHealth::RunningRanks() const {
  std::map<uint64_t, std::set<int>> ranks;
  for (const auto& [id, node] : nodes_) {
    for (const WorkerSample& worker : node.samples.workers) {
      if (!worker.has_ended) ranks[id].insert(worker.global_rank);
    }
  }
  return ranks;
}

void JobHealth::Conclude(HangVerdict verdict, TimePoint now, std::vector<HealthOrder>& orders) {
  auto running = RunningRanks();
  size_t count = 0;
  for (const auto& [node, ranks] : running) count += ranks.size();
  const size_t fewest = verdict.causes.empty() ? 2 : 1;  // from whose stacks a cause can follow
  if (!verdict.needs_stacks || count < fewest) {
    orders.emplace_back(FoundBy(verdict));
    return;
  }
  comparison_.emplace(Comparison{.verdict = std::move(verdict),
                                 .awaited = std::move(running),
                                 .deadline = now + kStacksTimeout});
  orders.emplace_back(StacksWanted{round_});
}

// A node may send stacks of its own ranks only. It may leave out some, of which one may be the
// cause.
std::vector<HealthOrder> JobHealth::OnStacks(uint64_t node, int round,
                                             const std::vector<RankDigest>& digests) {
  if (!comparison_ || round != round_) return {};
  auto ranks = comparison_->awaited.extract(node);
  if (ranks.empty()) return {};
  for (const RankDigest& rank : digests) {
    if (ranks.mapped().erase(rank.global_rank) > 0) comparison_->digests.push_back(rank);
  }
  const bool is_complete = ranks.mapped().empty();
  if (!is_complete) return {FoundBy(std::exchange(comparison_, std::nullopt)->verdict)};
  if (!comparison_->awaited.empty()) return {};
  const Comparison all = *std::exchange(comparison_, std::nullopt);
  return {FoundBy(WithSuspect(all.verdict, all.digests))};
}

std::optional<TimePoint> JobHealth::deadline() const {
  if (!comparison_) return std::nullopt;
  return comparison_->deadline;
}

// The cause may be among the ranks whose stacks are missing.
std::vector<HealthOrder> JobHealth::OnTick(TimePoint now) {
  if (!comparison_ || now < comparison_->deadline) return {};
  return {FoundBy(std::exchange(comparison_, std::nullopt)->verdict)};
}

// A node whose workers have all ended cannot report a failure of one of them.
HangFound JobHealth::FoundBy(const HangVerdict& verdict) const {
  HangFound found{
      .round = round_, .text = verdict.text, .reporter = std::numeric_limits<int>::max()};
  for (const auto& [id, node] : nodes_) {
    const auto& workers = node.samples.workers;
    if (std::ranges::all_of(workers, &WorkerSample::has_ended)) continue;
    for (const WorkerSample& worker : workers) {
      auto cause = verdict.causes.find(worker.global_rank);
      if (cause != verdict.causes.end()) found.ranks.push_back({cause->first, cause->second});
      if (!worker.has_ended) found.reporter = std::min(found.reporter, worker.global_rank);
    }
  }
  std::ranges::sort(found.ranks, {}, &HungRank::rank);
  return found;
}

}  // namespace rankrun::agent
