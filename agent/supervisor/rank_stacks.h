#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/inspect/inspector.h"
#include "agent/inspect/stack_groups.h"
#include "agent/report/attempt_record.h"
#include "agent/stacks/stack_taker.h"

namespace rankrun::agent {

// Answers `rankctl stacks` for the ranks of this node, one request at a time, because a process
// has one tracer.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class RankStacksTaker {
 public:
  using Reply = Inspector::Reply;

  // `spawner` outlives this object.
  RankStacksTaker(Loop& loop, Spawner& spawner) : loop_(loop), taker_(loop, spawner) {}

  // Takes the stacks of the ranks whose note does not say yet why there are none. Replies in
  // `room` bytes at most, within the time of AnswerTimeOf.
  void Answer(std::vector<StackGroup> ranks, size_t room, Reply reply);

  // Ends the program that takes stacks; its request is answered with what it has found.
  void Cancel() { taker_.Cancel(); }

 private:
  void Encode(std::vector<StackGroup> ranks, size_t room, Reply reply);

  Loop& loop_;
  bool is_busy_ = false;
  StackTaker taker_;
};

// Returns an entry for each of `ranks` that this node has: those of `workers`, which begin with
// `first_rank`. The note says why a rank has no stack. Pure.
std::vector<StackGroup> RanksOf(const std::vector<const WorkerRecord*>& workers, int first_rank,
                                const std::vector<int>& ranks);

}  // namespace rankrun::agent
