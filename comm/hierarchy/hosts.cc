#include "comm/hierarchy/hosts.h"

#include <algorithm>
#include <map>

#include "comm/core/operation.h"

namespace rankrun::comm::hierarchy {

Hosts::Hosts(const std::vector<std::string>& names, int own_rank) {
  std::map<std::string, int> indices;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    auto [known, is_new] = indices.emplace(names[rank], count());
    if (is_new) ranks_.emplace_back();
    ranks_[static_cast<size_t>(known->second)].push_back(static_cast<int>(rank));
    host_of_.push_back(known->second);
  }
  own_ = host_of(own_rank);
}

int Hosts::IndexInHost(int rank) const {
  const std::vector<int>& all = ranks(host_of(rank));
  return static_cast<int>(std::find(all.begin(), all.end(), rank) - all.begin());
}

std::vector<int> Hosts::Representatives(int root) const {
  std::vector<int> representatives;
  for (const std::vector<int>& ranks : ranks_) representatives.push_back(ranks.front());
  if (root != Operation::kNoRoot) representatives[static_cast<size_t>(host_of(root))] = root;
  return representatives;
}

}  // namespace rankrun::comm::hierarchy
