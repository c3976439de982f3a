#include "agent/output/ended_output.h"

#include <algorithm>
#include <utility>

namespace rankrun::agent {

void EndedOutput::Keep(int attempt, int first_rank, std::vector<LastOutput> workers) {
  attempt_ = attempt;
  first_rank_ = first_rank;
  workers_ = std::move(workers);
  size_t share = kMaxBytes / std::max<size_t>(1, 2 * workers_.size());
  for (LastOutput& worker : workers_) {
    worker.out.tail.Cut(std::min(share, TailBuffer::kKeptBytes));
    worker.error.tail.Cut(std::min(share, TailBuffer::kKeptBytes));
  }
}

const LastOutput* EndedOutput::Find(int rank) const {
  int64_t index = int64_t{rank} - first_rank_;
  bool is_kept = index >= 0 && static_cast<size_t>(index) < workers_.size();
  return is_kept ? &workers_[static_cast<size_t>(index)] : nullptr;
}

bool EndedOutput::HasMore(int rank, int attempt, uint64_t out, uint64_t error) const {
  const LastOutput* worker = attempt == attempt_ ? Find(rank) : nullptr;
  return worker != nullptr &&
         (worker->out.tail.total_bytes() > out || worker->error.tail.total_bytes() > error);
}

}  // namespace rankrun::agent
