#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/output/stdin_source.h"
#include "agent/worker/terminal_turns.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/uv/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Lends the terminal, our standard input, to the workers of an attempt that wait for input. One
// worker may have the terminal itself. Each other one has a pseudo-terminal of its own, so that
// programs behave as at the terminal, and gets a line whenever it waits for one and it is its
// turn. No event tells that a process waits, so this looks into /proc, some times a second.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class StdinLoans {
 public:
  struct Callbacks {
    std::function<void(int local_rank)> show_prompt;  // the line that it has begun
    std::function<void(const std::string& notice)> show;
    std::function<void()> on_line;  // a line was typed and is passed on
  };
  struct Ranks {
    int first = 0;                  // global rank of local rank 0
    int workers = 1;                // of this node
    std::optional<int> owner = {};  // local rank that has the terminal itself
  };

  // `source` must outlive this object.
  StdinLoans(Loop& loop, StdinSource& source, const Ranks& ranks, Callbacks callbacks);
  StdinLoans(const StdinLoans&) = delete;
  StdinLoans& operator=(const StdinLoans&) = delete;
  ~StdinLoans();

  // Opens the pseudo-terminal that a worker inherits. May be repeated. Errors: those of
  // OutputChannel; the worker then gets no input.
  Result<void> Prepare(int local_rank);
  // Whether a worker may get input; not once the kernel has hidden its calls.
  bool HasInput(int local_rank) const {
    return borrowers_[static_cast<size_t>(local_rank)].has_input;
  }
  // Our terminal for the worker that has it itself; Fd::kNone: the worker gets no input.
  int worker_end(int local_rank) const;

  void OnStarted(int local_rank, pid_t worker);
  void OnEnded(int local_rank);

  // Whether a worker waited for input at the last look, while a person was at the terminal.
  bool Waits(int local_rank) const { return waiting_.contains(ranks_.first + local_rank); }

 private:
  struct Borrower {
    Fd worker_end = Fd();   // until the worker has its copy
    Fd our_end = Fd();      // empty: it has no pseudo-terminal
    std::string file = {};  // from which it reads, as /proc names it
    std::optional<pid_t> worker = {};
    int hidden_looks = 0;  // in a row
    bool has_input = false;
  };
  struct Look;

  Borrower& At(int local_rank) { return borrowers_[static_cast<size_t>(local_rank)]; }
  Duration Period() const;
  void BeginLook();
  void OnSeen(const Look& look);
  void ForgetTurns();
  void CountHidden(int local_rank, bool shows_calls);
  void OnRead(int local_rank, const std::string& bytes);

  Loop& loop_;
  StdinSource& source_;
  const Ranks ranks_;
  Callbacks callbacks_;
  const std::string terminal_;  // file of our standard input
  std::vector<Borrower> borrowers_;
  TerminalTurns turns_;
  std::set<int> waiting_;      // global ranks
  std::optional<int> reader_;  // local rank for which the source reads
  bool is_looking_ = false;
  int searched_bytes_ = 0;  // typed, and wanted by no thread
  Timer next_;
  // The callback of the pool has a weak reference, and so learns that this object is gone.
  std::shared_ptr<StdinLoans*> self_;
};

}  // namespace rankrun::agent
