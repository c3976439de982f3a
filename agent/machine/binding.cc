#include "agent/machine/binding.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace rankrun::agent {
namespace {

using Cores = std::vector<const Core*>;
using Place = Result<std::vector<Cpus>>;

Error Refusal(Binding binding, const std::string& what) {
  return Error{ErrorCode::kInvalid, "binding by " + BindingName(binding) + ": " + what};
}

std::string Many(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

Cpus CpusOf(const Cores& cores) {
  Cpus cpus;
  for (const Core* core : cores) cpus.insert(cpus.end(), core->cpus.begin(), core->cpus.end());
  std::ranges::sort(cpus);
  return cpus;
}

// Returns share `slot` of `cores` divided evenly; the first shares get one
// more.
Cores Share(const Cores& cores, size_t shares, size_t slot) {
  size_t each = cores.size() / shares;
  size_t more = cores.size() % shares;
  auto begin = cores.begin() + static_cast<ptrdiff_t>(slot * each + std::min(slot, more));
  return {begin, begin + static_cast<ptrdiff_t>(each + (slot < more ? 1 : 0))};
}

// Groups the cores by `key`, in the order of each group's first core.
template <typename Key>
std::vector<Cores> GroupBy(const Cores& cores, Key key) {
  std::vector<Cores> groups;
  std::map<decltype(key(*cores[0])), size_t> index;
  for (const Core* core : cores) {
    auto [found, is_new] = index.try_emplace(key(*core), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(core);
  }
  return groups;
}

int NodeOf(const Core& core) { return core.numa_node; }

std::pair<int, int> CacheOf(const Core& core) { return {core.numa_node, core.last_cache}; }

// Computes one plan from its input.
class Planner {
 public:
  Planner(const Topology& topology, Binding binding, size_t workers,
          const std::vector<int>& gpu_nodes)
      : binding_(binding), workers_(workers), gpu_nodes_(gpu_nodes) {
    for (const Core& core : topology.cores) all_.push_back(&core);
    nodes_ = GroupBy(all_, NodeOf);
    if (gpu_nodes_.size() < workers_) gpu_nodes_.clear();
  }

  Place Plan() const {
    if (all_.empty()) return Refusal(binding_, "no core of this machine may be used");
    for (size_t i = 0; i < gpu_nodes_.size() && i < workers_; ++i) {
      if (!FindNode(gpu_nodes_[i])) {
        return Refusal(binding_, "GPU " + std::to_string(i) + " is at NUMA node " +
                                     std::to_string(gpu_nodes_[i]) +
                                     ", of which no core may be used");
      }
    }
    switch (binding_) {
      case Binding::kNone:
        break;  // a bug of the caller
      case Binding::kCore:
        return ByCore();
      case Binding::kNuma:
        return Each([this](size_t worker) { return HomeNode(worker); });
      case Binding::kSocket:
        return Each([this](size_t worker) { return Socket(worker); });
      case Binding::kExclusive:
        return Exclusive();
      case Binding::kCoreComplex:
        return Each([this](size_t worker) { return Complex(worker); });
    }
    return Refusal(binding_, "there is nothing to plan");
  }

 private:
  const Cores* FindNode(int number) const {
    auto found = std::ranges::find_if(
        nodes_, [&](const Cores& node) { return node[0]->numa_node == number; });
    return found == nodes_.end() ? nullptr : &*found;
  }

  // Neighbouring workers share an object: of 4 workers on 2 objects, the first
  // object has workers 0 and 1.
  const Cores& Spread(const std::vector<Cores>& objects, size_t worker) const {
    return objects[worker * objects.size() / workers_];
  }

  const Cores& HomeNode(size_t worker) const {
    return gpu_nodes_.empty() ? Spread(nodes_, worker) : *FindNode(gpu_nodes_[worker]);
  }

  template <typename CoresOf>
  std::vector<Cpus> Each(CoresOf cores_of) const {
    std::vector<Cpus> plan;
    for (size_t worker = 0; worker < workers_; ++worker) plan.push_back(CpusOf(cores_of(worker)));
    return plan;
  }

  // Divides all cores evenly. Shares and workers are both in the order of their
  // nodes, so that a worker gets cores of its own node first.
  Place ByCore() const {
    if (all_.size() < workers_) {
      return Refusal(binding_, Many(all_.size(), "core") + " for " + Many(workers_, "worker") +
                                   ", want at least one for each");
    }
    std::vector<size_t> order(workers_);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [this](size_t worker) { return &HomeNode(worker); });
    Cores cores;  // node by node
    for (const Cores& node : nodes_) cores.insert(cores.end(), node.begin(), node.end());
    std::vector<Cpus> plan(workers_);
    for (size_t slot = 0; slot < workers_; ++slot) {
      plan[order[slot]] = CpusOf(Share(cores, workers_, slot));
    }
    return plan;
  }

  Cores Socket(size_t worker) const {
    auto package = [](const Core& core) { return core.package; };
    if (gpu_nodes_.empty()) return Spread(GroupBy(all_, package), worker);
    std::set<int> packages;  // a NUMA node may span several
    for (const Core* core : HomeNode(worker)) packages.insert(core->package);
    Cores cores;
    for (const Core* core : all_) {
      if (packages.contains(core->package)) cores.push_back(core);
    }
    return cores;
  }

  // Returns the GPUs at the worker's node; without GPUs, the workers there.
  std::vector<size_t> Sharers(size_t worker) const {
    std::vector<size_t> sharers;
    size_t count = gpu_nodes_.empty() ? workers_ : gpu_nodes_.size();
    for (size_t other = 0; other < count; ++other) {
      bool here = gpu_nodes_.empty() ? &HomeNode(other) == &HomeNode(worker)
                                     : gpu_nodes_[other] == gpu_nodes_[worker];
      if (here) sharers.push_back(other);
    }
    return sharers;
  }

  static size_t Slot(const std::vector<size_t>& sharers, size_t worker) {
    return static_cast<size_t>(std::ranges::find(sharers, worker) - sharers.begin());
  }

  Place Exclusive() const {
    std::vector<Cpus> plan;
    for (size_t worker = 0; worker < workers_; ++worker) {
      const Cores& node = HomeNode(worker);
      std::vector<size_t> sharers = Sharers(worker);
      if (node.size() < sharers.size()) {
        return Refusal(binding_, "NUMA node " + std::to_string(node[0]->numa_node) + " has " +
                                     Many(node.size(), "core") + " for " +
                                     Many(sharers.size(), gpu_nodes_.empty() ? "worker" : "GPU") +
                                     ", want at least one for each");
      }
      plan.push_back(CpusOf(Share(node, sharers.size(), Slot(sharers, worker))));
    }
    return plan;
  }

  Cores Complex(size_t worker) const {
    if (gpu_nodes_.empty()) return Spread(GroupBy(all_, CacheOf), worker);
    std::vector<Cores> complexes = GroupBy(HomeNode(worker), CacheOf);
    std::ranges::stable_sort(complexes, std::greater(),
                             [](const Cores& cores) { return CpusOf(cores).size(); });
    return complexes[Slot(Sharers(worker), worker) % complexes.size()];
  }

  Binding binding_;
  size_t workers_;
  std::vector<int> gpu_nodes_;  // empty: fewer GPUs than workers, so GPUs are ignored
  Cores all_;
  std::vector<Cores> nodes_;
};

bool Overlap(const Cpus& one, const Cpus& other) {
  return std::ranges::any_of(one, [&](int cpu) { return std::ranges::binary_search(other, cpu); });
}

}  // namespace

std::string BindingName(Binding binding) {
  switch (binding) {
    case Binding::kNone:
      return "none";
    case Binding::kCore:
      return "core";
    case Binding::kNuma:
      return "numa";
    case Binding::kSocket:
      return "socket";
    case Binding::kExclusive:
      return "exclusive";
    case Binding::kCoreComplex:
      return "core-complex";
  }
  return "unknown";
}

Result<std::vector<Cpus>> PlanBinding(const Topology& topology, Binding binding, int workers,
                                      const std::vector<int>& gpu_nodes) {
  return Planner(topology, binding, static_cast<size_t>(workers), gpu_nodes).Plan();
}

std::vector<int> CoresEach(const Topology& topology, const std::vector<Cpus>& plan) {
  std::vector<int> cores_each;
  for (const Cpus& cpus : plan) {
    auto cores = std::ranges::count_if(topology.cores,
                                       [&](const Core& core) { return Overlap(core.cpus, cpus); });
    auto sharers =
        std::ranges::count_if(plan, [&](const Cpus& other) { return Overlap(other, cpus); });
    cores_each.push_back(static_cast<int>(std::max<ptrdiff_t>(1, cores / sharers)));
  }
  return cores_each;
}

}  // namespace rankrun::agent
