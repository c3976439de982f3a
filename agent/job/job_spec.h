#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/job/job_signals.h"
#include "agent/job/metrics_address.h"
#include "agent/job/nodes_spec.h"
#include "agent/job/output_spec.h"

namespace rankrun::agent {

// Program that a worker executes.
struct Program {
  std::string file;                    // for execve
  std::vector<std::string> arguments;  // argv, including argv[0]; see ArgumentsFor
  bool as_torchrun = false;            // "$$" in an argument becomes "$"; fewer placeholders
};

// Modules of Python that a preloader imports once for all workers.
struct Preload {
  std::string modules;        // "torch,torch._dynamo"
  size_t python_options = 0;  // arguments between Python and its script
};

// How the workers share the allowed cores. Neighbouring ranks get neighbouring
// cores. With GPUs, a worker gets cores near its own GPU.
enum class Binding {
  kNone,
  kCore,         // whole cores, not shared
  kNuma,         // a NUMA node
  kSocket,       // a package
  kExclusive,    // a share of the cores of its NUMA node, not shared
  kCoreComplex,  // cores under one last-level cache
};

// A job as the command line of one node describes it. A value.
struct JobSpec {
  int workers = 1;                 // on this node
  std::optional<NodesSpec> nodes;  // empty: this node alone
  int max_restarts = 0;
  std::chrono::milliseconds restart_pause{1'000};       // before the second restart in a row
  std::chrono::milliseconds shutdown_timeout{25'000};   // from a signal to SIGKILL
  std::chrono::milliseconds save_timeout{0};            // the same while a worker saves
  std::optional<std::chrono::milliseconds> time_limit;  // of the job, which is stopped then
  std::chrono::milliseconds hang_notice{10'000};        // wait of a worker before a notice; 0: none
  std::optional<std::chrono::milliseconds> hang_timeout;  // the same before it counts as failed
  // One node: time from the end of the first worker to that of all; empty: none.
  std::optional<std::chrono::milliseconds> finish_timeout;
  bool continue_on_failure = false;  // a failed worker does not stop the others
  std::vector<int> end_signals{kEndSignals.begin(), kEndSignals.end()};  // end the job gently
  bool heeds_interrupts = false;  // those of them that a shell ignores in `command &` count, too
  std::string master_addr = "127.0.0.1";  // passed to the workers unchanged
  bool store_open = false;                // the store of a job of one node admits other hosts
  bool master_addr_typed = false;         // set by the user: bound besides loopback
  std::optional<uint16_t> master_port;    // empty: a free port for each attempt
  std::string master_addr_origin = "--master-addr";  // for messages: the flag, or another source
  std::string master_port_origin = "--master-port";
  std::string master_port_text = {};      // the value of that setting; empty: the port
  std::optional<size_t> store_max_value;  // bytes; empty: the store's default
  std::string run_id;
  std::string role = "default";
  std::string host_name;                              // of this machine
  bool virtual_local_rank = false;                    // each worker has LOCAL_RANK=0 and one GPU
  std::optional<std::vector<std::string>> gpus;       // set by the user, as in CUDA_VISIBLE_DEVICES
  std::string gpu_variable = "CUDA_VISIBLE_DEVICES";  // chooses the GPUs of a worker
  std::optional<int> cpu_limit;                       // of the container; empty: none
  Binding binding = Binding::kNone;
  OutputSpec output;
  std::string version;                    // of rankrun, for events
  std::optional<int> lifeline;            // descriptor: its end of file ends the job gently
  std::optional<pid_t> mpirun;            // process that started us: its end ends the job gently
  std::string events_file;                // receives events as JSON lines; empty: no file
  bool events_console = false;            // events also go to standard error
  std::optional<MetricsAddress> metrics;  // empty: none are served
  std::string report_folder;              // for kept reports; empty: none is kept
  bool report_folder_typed = false;       // set by the user: a warning if it cannot be used
  Program program;
  std::optional<Preload> preload;        // empty: each worker is executed
  std::vector<std::string> environment;  // of the user, "NAME=value"
  std::optional<rlim_t> open_files;      // soft limit of the user
  std::optional<rlim_t> core_bytes;      // the same of a core file; none: unchanged
};

}  // namespace rankrun::agent
