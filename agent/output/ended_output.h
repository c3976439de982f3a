#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/output/line_buffer.h"

namespace rankrun::agent {

// The last output of one worker.
struct LastOutput {
  struct Stream {
    TailBuffer tail{};
    std::string file{};  // at which all of it is stored; empty: none
  };
  pid_t pid = 0;
  Stream out{};
  Stream error{};
};

// The last output of an attempt that has ended, so that `rankctl logs` shows it until the next
// attempt has ended. Pure.
class EndedOutput {
 public:
  static constexpr size_t kMaxBytes = size_t{4} << 20;  // of all workers

  // Replaces the output of an earlier attempt. Cuts each stream, so that all fit.
  void Keep(int attempt, int first_rank, std::vector<LastOutput> workers);

  // The output of a rank; null if it is not kept.
  const LastOutput* Find(int rank) const;
  int attempt() const { return attempt_; }  // -1: none

  // Returns whether a reader of this attempt at these positions has not read all of it.
  bool HasMore(int rank, int attempt, uint64_t out, uint64_t error) const;

 private:
  int attempt_ = -1;
  int first_rank_ = 0;
  std::vector<LastOutput> workers_;
};

}  // namespace rankrun::agent
