#include "comm/world/terminal_loan.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/status/status_page.h"
#include "comm/world/held_rank.h"

namespace rankrun::comm {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{10};
// For the guardian to get the terminal back.
constexpr std::chrono::seconds kReturning{2};

Error NoTerminal(const std::string& why) {
  return {ErrorCode::kInvalid, "there is no terminal for a debugger of this rank: " + why};
}

}  // namespace

TerminalLoan::TerminalLoan(const HeldRank& rank, const StatusPage* page)
    : page_(page),
      stop_{rank.global_rank, NextHold(page)},
      awaited_(page, std::string(kUserWait) + rank.place) {}

Result<std::unique_ptr<TerminalLoan>> TerminalLoan::Ask(const HeldRank& rank) {
  std::unique_ptr<TerminalLoan> loan(new TerminalLoan(rank, StatusPage::OfThisProcess()));
  if (auto ok = loan->AskAgent(rank); !ok) return ok.error();
  return loan;
}

Result<void> TerminalLoan::AskAgent(const HeldRank& rank) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return SystemError("create a pipe", errno);
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  if (!TellAgent("borrows", stop_, " " + std::to_string(write_end.get()))) {
    path_ = "/dev/tty";
    if (Fd(open(path_.c_str(), O_RDWR | O_CLOEXEC))) return {};
    return NoTerminal("/dev/tty cannot be opened, and no rankrun has started this process");
  }
  lent_ = std::move(read_end);
  auto arrived = AwaitPath(rank);
  if (arrived && path_.empty()) return NoTerminal("the output of rankrun has the reason");
  return arrived;
}

// Reads the path up to the end of its line.
Result<void> TerminalLoan::AwaitPath(const HeldRank& rank) {
  const TimePoint began = MonotonicClock().Now();
  for (;;) {
    char part[256];
    const ssize_t size = read(lent_.get(), part, sizeof part);
    path_.append(part, size > 0 ? static_cast<size_t>(size) : 0);
    if (path_.ends_with('\n')) {
      path_.pop_back();
      return {};
    }
    if (rank.deaths.has_death()) return rank.deaths.ErrorSince(began);
    if (auto failure = rank.find_failure(began)) return *std::move(failure);
    rank.deaths.SleepUntil(MonotonicClock().Now() + kBetweenLooks);
  }
}

void TerminalLoan::GoOn() {
  if (std::exchange(goes_on_, true)) return;
  if (lent_) TellAgent("passed", stop_);
}

// Waits until rankrun has the terminal again, so that a loan that follows does not find it
// lent. Not after a failed Ask.
TerminalLoan::~TerminalLoan() {
  GoOn();
  if (!lent_ || path_.empty()) return;
  TellAgent("returned", stop_);
  lent_.Reset();
  const TimePoint until = MonotonicClock().Now() + kReturning;
  while (page_ != nullptr && page_->debuggers_ended() < stop_.hold &&
         MonotonicClock().Now() < until) {
    usleep(1000);
  }
}

}  // namespace rankrun::comm
