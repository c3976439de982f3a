#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "comm/world/join_group.h"
#include "tests/comm/memory_store.h"
#include "tests/paths.h"

namespace rankrun::comm {

// Options with which the ranks of a test join over loopback.
inline JoinGroupOptions JoinAs(int rank, int world_size, const std::string& backend = "gloo",
                               std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  std::vector<int> ranks(static_cast<size_t>(world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return {.identity = {.global_rank = rank,
                       .global_ranks = ranks,
                       .group_rank = rank,
                       .timeout = timeout,
                       .key_prefix = "test"},
          .deadline = std::chrono::steady_clock::now() + timeout,
          .backend = {.name = backend},
          .plugin_folders = {test::Library()},
          .host = "127.0.0.1"};
}

// Returns this rank's group over `keys`, or null after a reported failure.
inline std::unique_ptr<Group> Joined(const std::shared_ptr<MemoryKeys>& keys,
                                     const JoinGroupOptions& options) {
  auto group = JoinGroup(std::make_unique<MemoryStore>(keys), options);
  if (!group) {
    ADD_FAILURE() << group.error().message;
    return nullptr;
  }
  return *std::move(group);
}

}  // namespace rankrun::comm
