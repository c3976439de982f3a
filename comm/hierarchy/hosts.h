#pragma once

#include <string>
#include <vector>

namespace rankrun::comm::hierarchy {

// The ranks of a group by host. Hosts are in the order of their first ranks. A
// value.
class Hosts {
 public:
  // `names`: host of each rank, by group rank.
  Hosts(const std::vector<std::string>& names, int own_rank);

  int count() const { return static_cast<int>(ranks_.size()); }
  int own() const { return own_; }  // index of this rank's host
  const std::vector<int>& ranks(int host) const { return ranks_[static_cast<size_t>(host)]; }
  const std::vector<int>& own_ranks() const { return ranks(own_); }
  int host_of(int rank) const { return host_of_[static_cast<size_t>(rank)]; }
  // Returns the position of a rank among the ranks of its host.
  int IndexInHost(int rank) const;
  // Returns the rank that represents each host in a call with this root.
  std::vector<int> Representatives(int root) const;

 private:
  std::vector<std::vector<int>> ranks_;
  std::vector<int> host_of_;
  int own_ = 0;
};

}  // namespace rankrun::comm::hierarchy
