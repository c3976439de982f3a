#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::agent {

// What a worker executes.
struct Program {
  std::string file;                    // for execve
  std::vector<std::string> arguments;  // argv, argv[0] included
};

// A job as one node's command line describes it. A value.
struct JobSpec {
  int workers = 1;  // on this node
  int max_restarts = 0;
  std::chrono::milliseconds shutdown_timeout{25'000};
  std::string master_addr = "127.0.0.1";  // passed to the workers as it is
  bool master_addr_typed = false;         // then it is bound besides loopback
  std::optional<uint16_t> master_port;    // nothing: a free one for each attempt
  std::optional<size_t> store_max_value;  // bytes; nothing: the store's default
  std::string run_id;
  Program program;
  std::vector<std::string> environment;  // as the user had it, "NAME=value"
  std::optional<rlim_t> open_files;      // soft limit as the user had it
};

}  // namespace rankrun::agent
