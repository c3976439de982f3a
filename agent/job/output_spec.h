#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rankrun::agent {

// Destinations of one output stream of a worker. With neither, the stream is
// read and only its last bytes are kept.
struct StreamPlan {
  bool to_console = true;
  bool to_file = false;
};

struct WorkerOutput {
  StreamPlan standard_output;
  StreamPlan standard_error;
};

// Workers that read our standard input; all others read /dev/null.
struct StdinPlan {
  // kAll: each gets a copy of it. kInherit: all inherit it, and each byte reaches one of them.
  enum class Reader { kNobody, kOne, kAll, kInherit };
  Reader reader = Reader::kOne;
  int local_rank = 0;  // the reader of kOne, on the node with rank 0
};

// Destinations of the workers' output, and readers of our standard input.
struct OutputSpec {
  std::vector<WorkerOutput> workers;  // by local rank; missing entries have the default
  // Global ranks whose output reaches the console, if it does by `workers`; nothing: all.
  std::optional<std::set<int>> shown_ranks;
  std::optional<std::string> log_dir;  // set by the user; empty: a folder in TMPDIR
  bool no_files = false;               // --log-dir /dev/null: no folder, no files, no error files
  std::string trace_dir;               // for traces of the workers' operations; empty: none
  // Text before each line on the console. ${role_name}, ${local_rank} and
  // ${rank} stand for their values. Empty: none.
  std::string prefix;
  bool prefix_teed_only = false;  // prefix only lines that go both to a file and to the console
  // Lines that contain one of these texts also go to filtered_stdout.log and
  // filtered_stderr.log, from all workers whose stream has a file.
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  uint64_t log_limit = 0;  // bytes of a log file before it is rotated; 0: no limit
  bool pty = false;        // a worker's standard output is a terminal even if ours is not
  StdinPlan standard_input;
};

}  // namespace rankrun::agent
