#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "agent/stacks/process_stacks.h"
#include "base/result.h"

// The answer of a node to `rankctl stacks`: stacks of ranks, equal ones together. Pure.
namespace rankrun::agent {

struct RankProcess {
  int rank = 0;
  pid_t pid = 0;          // 0: it has not started
  std::string node = {};  // empty in the answer of a node
  bool operator==(const RankProcess&) const = default;
};

// Ranks with equal stacks.
struct StackGroup {
  std::vector<RankProcess> ranks = {};  // ascending
  ProcessStacks stacks = {};            // of the first one; its note says why there are none
  size_t omitted_threads = 0;           // that had no room
  size_t omitted_frames = 0;            // outer ones, of the threads that are there
  bool operator==(const StackGroup&) const = default;
};

// Puts groups with equal stacks together, and sorts them by their first ranks. Numbers of
// processes, threads, sockets and pipes, and functions of the kernel, may differ.
std::vector<StackGroup> MergeStackGroups(std::vector<StackGroup> groups);

// Encodes groups as JSON of at most `max_bytes`. Leaves out first the interpreter's own frames,
// then threads and outer frames, and at last stacks, whose note says so.
std::string EncodeStackGroups(std::vector<StackGroup> groups, size_t max_bytes);
// Ignores unknown fields. Errors: kProtocol; kInvalid, the error that the node reports.
Result<std::vector<StackGroup>> DecodeStackGroups(std::string_view json);

// Returns "12 threads and 3 outer frames had no room in the answer"; empty: nothing is left out.
std::string OmittedInWords(const StackGroup& group);

}  // namespace rankrun::agent
