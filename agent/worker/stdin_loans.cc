#include "agent/worker/stdin_loans.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/worker/input_request.h"
#include "base/log.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::milliseconds kPeriodPerWorker{25};  // costs below 0.1 % of a core
constexpr std::chrono::milliseconds kMinPeriod{250};
constexpr std::chrono::milliseconds kMaxPeriod{2'000};
constexpr std::chrono::milliseconds kAfterLine{20};  // until its reader may wait for the next

}  // namespace

// A look in the pool.
struct StdinLoans::Look {
  struct Worker {
    int global_rank;
    pid_t pid;
    std::string file;
    bool is_owner;
  };
  std::vector<Worker> workers = {};
  TerminalTurns::Seen seen = {};
  std::set<int> hidden = {};     // global ranks whose calls are not shown
  bool is_in_foreground = true;  // else the keys are for a shell or a debugger

  void Run() {
    for (const Worker& worker : workers) {
      const auto waits = WaitsForInput(worker.pid, worker.file);
      if (!waits && !worker.is_owner) hidden.insert(worker.global_rank);
      if (!waits.value_or(false)) continue;
      if (worker.is_owner) seen.owner = worker.global_rank;
      if (!worker.is_owner) seen.asking.insert(worker.global_rank);
    }
    // This process has a session of its own; the guardian is in the terminal's.
    if (!seen.asking.empty()) is_in_foreground = IsInForeground(getppid());
  }
};

StdinLoans::StdinLoans(Loop& loop, StdinSource& source, const Ranks& ranks, Callbacks callbacks)
    : loop_(loop),
      source_(source),
      ranks_(ranks),
      callbacks_(std::move(callbacks)),
      terminal_(FileOfDescriptor(getpid(), STDIN_FILENO)),
      borrowers_(static_cast<size_t>(ranks.workers)),
      hidden_(static_cast<size_t>(ranks.workers)),
      next_(loop, [this] { BeginLook(); }),
      self_(std::make_shared<StdinLoans*>(this)) {
  next_.Start(Period());
}

StdinLoans::~StdinLoans() {
  if (reader_) source_.GiveBack("");
}

Duration StdinLoans::Period() const {
  return std::clamp(ranks_.workers * kPeriodPerWorker, kMinPeriod, kMaxPeriod);
}

Result<void> StdinLoans::Prepare(int local_rank) {
  Borrower& borrower = At(local_rank);
  if (local_rank == ranks_.owner) {
    borrower.file = terminal_;
    return {};
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("create a pipe", errno);
  borrower.worker_end.Reset(ends[0]);
  borrower.write_end.Reset(ends[1]);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);  // affects this end only
  borrower.file = FileOfDescriptor(getpid(), ends[0]);
  return {};
}

int StdinLoans::worker_end(int local_rank) const {
  if (local_rank == ranks_.owner) return STDIN_FILENO;
  return borrowers_[static_cast<size_t>(local_rank)].worker_end.get();
}

void StdinLoans::OnStarted(int local_rank, pid_t worker) {
  At(local_rank).worker = worker;
  At(local_rank).worker_end.Reset();
}

void StdinLoans::OnEnded(int local_rank) {
  At(local_rank) = {};
  waiting_.erase(ranks_.first + local_rank);
  if (reader_ != local_rank) return;
  source_.GiveBack("");
  reader_.reset();
}

void StdinLoans::BeginLook() {
  next_.Start(Period());
  if (is_looking_) return;
  auto look = std::make_shared<Look>();  // shared by both callbacks
  for (int i = 0; i < ranks_.workers; ++i) {
    const Borrower& borrower = At(i);
    const bool is_owner = i == ranks_.owner;
    if (!borrower.worker || (!is_owner && !borrower.write_end)) continue;
    look->workers.push_back({ranks_.first + i, *borrower.worker, borrower.file, is_owner});
  }
  if (look->workers.empty()) return;
  is_looking_ = true;
  RunInPool(
      loop_, [look] { look->Run(); },
      [look, self = std::weak_ptr<StdinLoans*>(self_)] {
        if (auto loans = self.lock()) (*loans)->OnSeen(*look);
      });
}

// A worker may have ended since the look.
void StdinLoans::OnSeen(const Look& look) {
  const TerminalTurns::Seen& seen = look.seen;
  is_looking_ = false;
  CountHidden(look.hidden);
  TerminalTurns::Turn turn;
  if (look.is_in_foreground) turn = turns_.Look(seen, std::chrono::steady_clock::now());
  waiting_ = seen.asking;
  if (seen.owner) waiting_.insert(*seen.owner);
  for (int rank : seen.asking) callbacks_.show_prompt(rank - ranks_.first);
  for (const std::string& notice : turn.notices) callbacks_.show(notice);
  std::optional<int> reader;
  if (turn.reader) reader = *turn.reader - ranks_.first;
  if (reader && !At(*reader).write_end) reader.reset();
  if (reader == reader_) return;
  if (reader_) source_.GiveBack("");
  reader_ = reader;
  if (!reader_) return;
  source_.Read([this, rank = *reader_](const std::string& bytes) { OnRead(rank, bytes); });
}

// Such a worker reads the end of its input, as from /dev/null, instead of waiting for ever.
void StdinLoans::CountHidden(const std::set<int>& hidden) {
  for (int i = 0; i < ranks_.workers; ++i) {
    int& count = hidden_[static_cast<size_t>(i)];
    if (!At(i).worker || count == kHidden) continue;
    count = hidden.contains(ranks_.first + i) ? count + 1 : 0;
    if (count == kHidden) At(i).write_end.Reset();
  }
}

void StdinLoans::OnRead(int local_rank, const std::string& bytes) {
  reader_.reset();
  Fd& pipe = At(local_rank).write_end;
  if (bytes.empty()) return pipe.Reset();  // Ctrl-D
  const ssize_t size = write(pipe.get(), bytes.data(), bytes.size());
  if (size != static_cast<ssize_t>(bytes.size())) {
    LogWarn("rank " + std::to_string(ranks_.first + local_rank) + " has not taken its input");
  }
  next_.Start(kAfterLine);
}

}  // namespace rankrun::agent
