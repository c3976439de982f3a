#include "agent/stacks/stack_taker.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

#include "agent/stacks/stacks_json.h"
#include "base/fd.h"
#include "base/process/helper_file.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_poll.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {
namespace {

constexpr const char* kProgram = "rankrun-stacks";
constexpr const char* kLate = "there was no time to read its stack";
constexpr std::chrono::milliseconds kGrace{300};  // for its start and its last line
constexpr size_t kMaxBytes = 32 << 20;            // of its output
constexpr int kReadsInOneTurn = 4;                // of the loop

std::vector<std::string> EnvironmentOfProgram() {
  const char* path = std::getenv("LD_LIBRARY_PATH");
  if (path == nullptr) return {};
  return {std::string("LD_LIBRARY_PATH=") + path};
}

}  // namespace

// One run of the program.
class StackTaker::Run : public std::enable_shared_from_this<StackTaker::Run> {
 public:
  Run(Loop& loop, std::vector<pid_t> pids, Done done)
      : loop_(loop),
        pids_(std::move(pids)),
        done_(std::move(done)),
        deadline_(std::make_unique<Timer>(loop, [this] { Finish(kLate); })) {}

  void Start(Spawner& spawner, Duration budget) {
    deadline_->Start(budget + kGrace);
    if (auto ok = TryStart(spawner, budget); !ok) Finish(ok.error().message);
  }

  bool is_finished() const { return is_finished_; }

  void Finish(const std::string& why) {
    if (std::exchange(is_finished_, true)) return;
    deadline_->Stop();
    if (poll_) poll_->Stop();
    Kill();
    why_none_ = why;
    loop_.Post([self = shared_from_this()] {
      self->poll_.reset();
      self->Deliver();
    });
  }

  // Calls `done`, if that is still to come.
  void Deliver() {
    if (!done_) return;
    std::vector<ProcessStacks> all;
    for (pid_t pid : pids_) {
      auto found = stacks_.find(pid);
      all.push_back(found != stacks_.end() ? found->second
                                           : ProcessStacks{.pid = pid, .note = why_none_});
    }
    stacks_.clear();
    std::exchange(done_, nullptr)(std::move(all));
  }

  // Ends without calling `done`. Not to be called inside a callback of this object.
  void Abandon() {
    is_finished_ = true;
    done_ = nullptr;
    poll_.reset();
    deadline_.reset();
    Kill();
  }

 private:
  Result<void> TryStart(Spawner& spawner, Duration budget) {
    auto program = FindHelperFile(kProgram, X_OK);
    if (!program) return std::move(program).error();
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("create a pipe", errno);
    read_end_.Reset(ends[0]);
    write_end_.Reset(ends[1]);
    null_.Reset(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null_) return SystemError("open /dev/null", errno);
    auto poll = Poll::Open(loop_, read_end_.get(), [this] { Read(); });
    if (!poll) return std::move(poll).error();
    poll_ = std::move(*poll);
    poll_->Start();
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(budget).count();
    SpawnSpec spec{.file = *program, .arguments = {kProgram, std::to_string(limit)}};
    for (pid_t pid : pids_) spec.arguments.push_back(std::to_string(pid));
    spec.environment = EnvironmentOfProgram();
    spec.stdin_fd = spec.stderr_fd = null_.get();
    spec.stdout_fd = write_end_.get();
    spawner.Start(std::move(spec),
                  [self = shared_from_this()](auto result) { self->OnStarted(std::move(result)); });
    return {};
  }

  void OnStarted(Result<SpawnedProcess> result) {
    write_end_.Reset();
    null_.Reset();
    if (!result) return Finish(result.error().message);
    process_ = std::move(result->handle);
    if (is_finished()) Kill();
  }

  // Parses lines as they arrive, so that the loop is never busy with all of them at once.
  void Read() {
    char buffer[64 * 1024];
    for (int i = 0; i < kReadsInOneTurn; ++i) {
      const ssize_t count = read(read_end_.get(), buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) {
        return Finish("rankrun-stacks has ended without an answer (is libdw1 installed?)");
      }
      read_bytes_ += static_cast<size_t>(count);
      if (read_bytes_ > kMaxBytes) return Finish("rankrun-stacks has printed too much");
      TakeLines({buffer, static_cast<size_t>(count)});
    }
  }

  void TakeLines(std::string_view bytes) {
    for (size_t end; (end = bytes.find('\n')) != std::string_view::npos;
         bytes.remove_prefix(end + 1)) {
      line_.append(bytes.substr(0, end));
      if (auto stacks = ParseStacks(line_)) {
        const pid_t pid = stacks->pid;
        stacks_.emplace(pid, *std::move(stacks));
      }
      line_.clear();
    }
    line_.append(bytes);
  }

  // Its children die with it.
  void Kill() const {
    if (process_) process_.Send(SIGKILL);
  }

  Loop& loop_;
  const std::vector<pid_t> pids_;
  Done done_;  // null once called
  std::unique_ptr<Timer> deadline_;
  Fd null_;
  Fd read_end_;
  Fd write_end_;  // until the program has started
  ProcessHandle process_;
  std::unique_ptr<Poll> poll_;
  size_t read_bytes_ = 0;
  std::string line_;  // incomplete
  std::map<pid_t, ProcessStacks> stacks_;
  bool is_finished_ = false;
  std::string why_none_;  // if the program has printed nothing about a process
};

StackTaker::~StackTaker() {
  for (const auto& run : runs_) run->Abandon();
}

void StackTaker::Take(const std::vector<pid_t>& pids, Duration budget, Done done) {
  std::erase_if(runs_, [](const auto& run) { return run->is_finished(); });
  runs_.push_back(std::make_shared<Run>(loop_, pids, std::move(done)));
  runs_.back()->Start(spawner_, budget);
}

void StackTaker::Cancel() {
  for (const auto& run : runs_) {
    run->Finish(kLate);
    run->Deliver();
  }
}

}  // namespace rankrun::agent
