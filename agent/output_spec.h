#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::agent {

// Where one of a worker's output streams goes. Neither: it is read and, but for
// its last bytes, forgotten.
struct StreamPlan {
  bool to_console = true;
  bool to_file = false;
};

struct WorkerOutput {
  StreamPlan standard_output;
  StreamPlan standard_error;
};

// Who reads our standard input; the others read /dev/null.
struct StdinPlan {
  enum class Reader { kNobody, kOne, kAll };
  Reader reader = Reader::kOne;
  int local_rank = 0;  // of kOne, on the node of rank 0
};

// What becomes of the workers' output and our standard input.
struct OutputSpec {
  std::vector<WorkerOutput> workers;   // by local rank; those beyond its end: the default
  std::optional<std::string> log_dir;  // typed; nothing: a folder in TMPDIR
  bool no_files = false;               // --log-dir /dev/null: no folder, no files, no error files
  // Before each line on the console; ${role_name}, ${local_rank} and ${rank}
  // stand for their values. Empty: none.
  std::string prefix;
  bool prefix_teed_only = false;  // only lines that go to a file and the console carry it
  // Lines that contain one of them go, of all workers whose stream has a file,
  // to filtered_stdout.log and filtered_stderr.log besides.
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  uint64_t log_limit = 0;  // bytes of a log file, then it is rotated; 0: none
  bool pty = false;        // a worker's standard output is a terminal even if ours is none
  StdinPlan standard_input;
};

}  // namespace rankrun::agent
