#pragma once

#include <cstdint>
#include <string>

// Command line of the user. Counts are at least 1 unless stated otherwise.
struct Args {
  std::string data = "/usr/share/common-licenses/GPL-3";
  int64_t steps = 400;
  int batch = 256;  // samples of all workers together, per step
  int hidden = 64;
  uint64_t seed = 1;
  std::string checkpoint;  // empty: none
  int64_t checkpoint_every = 100;
  int pace = 0;       // milliseconds
  int die_rank = -1;  // -1: none
  int64_t die_at = 0;
};

// Parses the command line. Ends the process for --help (exit code 0) and for an
// invalid command line (2, after one line on standard error).
Args ParseArgs(int argc, char** argv);
