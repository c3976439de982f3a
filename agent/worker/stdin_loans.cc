#include "agent/worker/stdin_loans.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/output/output_channel.h"
#include "agent/worker/input_request.h"
#include "base/log.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::milliseconds kPeriodPerWorker{25};  // costs below 0.1 % of a core
constexpr std::chrono::milliseconds kMinPeriod{250};
constexpr std::chrono::milliseconds kMaxPeriod{2'000};
constexpr std::chrono::milliseconds kAfterLine{20};  // until its reader may wait for the next
// After so long without a key the person may have left.
constexpr time_t kIdleSeconds = 600;

// Returns how many bytes were typed and not read.
int WaitingBytes(int terminal) {
  int bytes = 0;
  return ioctl(terminal, FIONREAD, &bytes) == 0 ? bytes : 0;
}

// The kernel notes the time when a process reads from a terminal.
bool IsAttended(int terminal) {
  struct stat status {};
  return fstat(terminal, &status) == 0 && time(nullptr) - status.st_atime < kIdleSeconds;
}

// The job's terminal edits and echoes a line before it is passed on.
void ReadLinesWithoutEcho(int terminal) {
  termios modes{};
  if (tcgetattr(terminal, &modes) != 0) return;
  modes.c_lflag |= ICANON;
  tcsetattr(terminal, TCSANOW, &modes);
}

}  // namespace

// A look in the pool.
struct StdinLoans::Look {
  struct Worker {
    int global_rank;
    pid_t pid;
    std::string file;
    bool is_owner;
    bool shows_calls = false;
  };
  std::vector<Worker> workers = {};
  TerminalTurns::Seen seen = {};
  bool is_attended = false;
  int searched_bytes = 0;  // that no thread wants, by an earlier look

  // Looks at all threads once for each line that no other reader takes, because there may be
  // thousands.
  void Run() {
    is_attended = IsAttended(STDIN_FILENO);
    for (Worker& worker : workers) worker.shows_calls = ShowsCalls(worker.pid);
    LookAt(Readers::kMainThreads);
    if (IsWanted()) return;
    const int bytes = WaitingBytes(STDIN_FILENO);
    if (bytes != std::exchange(searched_bytes, bytes) && bytes > 0) LookAt(Readers::kAll);
    if (IsWanted()) searched_bytes = 0;
  }
  bool IsWanted() const { return !seen.asking.empty() || seen.owner; }
  void LookAt(Readers readers) {
    for (const Worker& worker : workers) {
      if (!WaitsForInput(worker.pid, worker.file, readers)) continue;
      if (worker.is_owner) seen.owner = worker.global_rank;
      if (!worker.is_owner) seen.asking.insert(worker.global_rank);
    }
  }
};

StdinLoans::StdinLoans(Loop& loop, StdinSource& source, const Ranks& ranks, Callbacks callbacks)
    : loop_(loop),
      source_(source),
      ranks_(ranks),
      callbacks_(std::move(callbacks)),
      terminal_(FileOfDescriptor(getpid(), STDIN_FILENO)),
      borrowers_(static_cast<size_t>(ranks.workers)),
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
    borrower.has_input = true;
    return {};
  }
  borrower = {};
  auto channel = OutputChannel::OpenTerminal(STDIN_FILENO);
  if (!channel) return std::move(channel).error();
  ReadLinesWithoutEcho(channel->worker_end.get());
  borrower.our_end = std::move(channel->read_end);
  borrower.worker_end = std::move(channel->worker_end);
  borrower.file = FileOfDescriptor(getpid(), borrower.worker_end.get());
  borrower.has_input = true;
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
  At(local_rank) = {.has_input = At(local_rank).has_input};
  waiting_.erase(ranks_.first + local_rank);
  if (reader_ != local_rank) return;
  source_.GiveBack("");
  reader_.reset();
}

void StdinLoans::BeginLook() {
  next_.Start(Period());
  if (is_looking_) return;
  if (!source_.HasTerminal()) return ForgetTurns();
  auto look = std::make_shared<Look>();  // shared by both callbacks
  look->searched_bytes = searched_bytes_;
  for (int i = 0; i < ranks_.workers; ++i) {
    const Borrower& borrower = At(i);
    const bool is_owner = i == ranks_.owner;
    if (!borrower.worker || (!is_owner && !borrower.our_end)) continue;
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
  searched_bytes_ = look.searched_bytes;
  for (const Look::Worker& worker : look.workers)
    CountHidden(worker.global_rank - ranks_.first, worker.shows_calls);
  if (!source_.HasTerminal()) return ForgetTurns();
  const TerminalTurns::Turn turn = turns_.Look(seen, std::chrono::steady_clock::now());
  waiting_.clear();
  if (look.is_attended) {
    waiting_ = seen.asking;
    if (seen.owner) waiting_.insert(*seen.owner);
  }
  for (int rank : seen.asking) callbacks_.show_prompt(rank - ranks_.first);
  for (const std::string& notice : turn.notices) callbacks_.show(notice);
  std::optional<int> reader;
  if (turn.reader) reader = *turn.reader - ranks_.first;
  if (reader && !At(*reader).our_end) reader.reset();
  if (reader == reader_) return;
  if (reader_) source_.GiveBack("");
  reader_ = reader;
  if (!reader_) return;
  source_.Read([this, rank = *reader_](const std::string& bytes) { OnRead(rank, bytes); });
}

// The keys are for a shell or a debugger.
void StdinLoans::ForgetTurns() {
  waiting_.clear();
  if (reader_) source_.GiveBack("");
  reader_.reset();
}

// The agent cannot see when such a worker waits. It reads the end of its input, as from /dev/null.
void StdinLoans::CountHidden(int local_rank, bool shows_calls) {
  constexpr int kHidden = 5;  // looks: one may come in the middle of exec
  Borrower& borrower = At(local_rank);
  borrower.hidden_looks = shows_calls ? 0 : borrower.hidden_looks + 1;
  if (borrower.hidden_looks != kHidden || !borrower.our_end) return;
  borrower.our_end.Reset();
  borrower.has_input = false;
}

void StdinLoans::OnRead(int local_rank, const std::string& bytes) {
  constexpr char kCtrlD = 'D' - '@';
  reader_.reset();
  const std::string keys = bytes.empty() ? std::string(1, kCtrlD) : bytes;
  const ssize_t size = write(At(local_rank).our_end.get(), keys.data(), keys.size());
  if (size != static_cast<ssize_t>(keys.size())) {
    LogWarn("rank " + std::to_string(ranks_.first + local_rank) + " has not taken its input");
  }
  if (keys.back() == '\n') callbacks_.on_line();
  next_.Start(kAfterLine);
}

}  // namespace rankrun::agent
