#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/job_signals.h"
#include "agent/nodes_spec.h"
#include "agent/output_spec.h"

namespace rankrun::agent {

// What a worker executes.
struct Program {
  std::string file;                    // for execve
  std::vector<std::string> arguments;  // argv, argv[0] included; see ArgumentsFor
  bool halve_dollars = false;          // "$$" in them becomes "$", as under torchrun
};

// How the workers share the cores that we may use: neighbours in the machine
// get neighbouring ranks; where there are GPUs, a worker gets cores near its own.
enum class Binding {
  kNone,
  kCore,         // whole cores of its own
  kNuma,         // a NUMA node
  kSocket,       // a package
  kExclusive,    // its share of the cores of its NUMA node, none twice
  kCoreComplex,  // cores under one last-level cache
};

// A job as one node's command line describes it. A value.
struct JobSpec {
  int workers = 1;                 // on this node
  std::optional<NodesSpec> nodes;  // nothing: this node alone
  int max_restarts = 0;
  std::chrono::milliseconds restart_pause{1'000};       // before the second restart in a row
  std::chrono::milliseconds shutdown_timeout{25'000};   // from a signal to SIGKILL
  std::chrono::milliseconds save_timeout{0};            // the same for a worker that saves
  std::optional<std::chrono::milliseconds> time_limit;  // of the job; then it is stopped
  bool continue_on_failure = false;                     // a failure does not end the others
  std::vector<int> end_signals{kEndSignals.begin(), kEndSignals.end()};  // handled; end the job
  std::string master_addr = "127.0.0.1";             // passed to the workers as it is
  bool master_addr_typed = false;                    // then it is bound besides loopback
  std::optional<uint16_t> master_port;               // nothing: a free one for each attempt
  std::string master_addr_origin = "--master-addr";  // what to blame: the flag, or another source
  std::string master_port_origin = "--master-port";
  std::optional<size_t> store_max_value;  // bytes; nothing: the store's default
  std::string run_id;
  std::string role = "default";
  bool virtual_local_rank = false;               // LOCAL_RANK=0 and one GPU for each
  std::optional<std::vector<std::string>> gpus;  // typed: as CUDA_VISIBLE_DEVICES names them
  Binding binding = Binding::kNone;
  OutputSpec output;
  std::string version;          // of rankrun, for events
  std::optional<int> lifeline;  // a descriptor: its end of file ends the job gently
  std::string events_file;      // JSON lines are appended there; empty: nowhere
  bool events_console = false;  // and to standard error
  Program program;
  std::vector<std::string> environment;  // as the user had it, "NAME=value"
  std::optional<rlim_t> open_files;      // soft limit as the user had it
};

}  // namespace rankrun::agent
