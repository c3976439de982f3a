#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

#include "comm/join.h"
#include "tests/comm/memory_store.h"

namespace rankrun::comm {

// Options with which the ranks of a test join over loopback.
inline JoinOptions JoinAs(int global_rank, int world_size,
                          std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  Environment environment;
  environment.global_rank = global_rank;
  environment.world_size = world_size;
  return {.environment = environment,
          .timeout = timeout,
          .deadline = std::chrono::steady_clock::now() + timeout,
          .backend = "gloo",
          .plugin_folders = {RANKRUN_LIB_DIR},
          .host = "127.0.0.1",
          .generation = 0};
}

// This rank's group over `keys`, or null after a reported failure.
inline std::unique_ptr<Group> Joined(const std::shared_ptr<MemoryKeys>& keys,
                                     const JoinOptions& options) {
  auto group = Join(std::make_unique<MemoryStore>(keys), options);
  if (!group) {
    ADD_FAILURE() << group.error().message;
    return nullptr;
  }
  return *std::move(group);
}

}  // namespace rankrun::comm
