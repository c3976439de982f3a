#include "tests/process/breakpoint/terminal.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/paths.h"

namespace rankrun::testing {
namespace {

// So large that gdb never asks for a key in the middle of its output.
constexpr winsize kSize{.ws_row = 1000, .ws_col = 400, .ws_xpixel = 0, .ws_ypixel = 0};

}  // namespace

TerminalJob::TerminalJob(const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& variables, std::string program) {
  if (program.empty()) program = test::Program("rankrun");
  std::vector<char*> argv{program.data()};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  int terminal = Fd::kNone;
  pid_ = forkpty(&terminal, nullptr, nullptr, &kSize);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // not possible below a debugger
    setenv("HOME", home_.path().c_str(), 1);
    setenv("TERM", "dumb", 1);    // no colours
    unsetenv("DEBUGINFOD_URLS");  // gdb would ask whether to use it
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    execv(program.c_str(), argv.data());
    _exit(99);
  }
  terminal_.Reset(terminal);
  tcgetattr(terminal_.get(), &modes_);
}

TerminalJob::~TerminalJob() {
  if (exit_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool TerminalJob::ShowsAll(const std::vector<std::string>& texts) {
  size_t end = found_;
  auto is_there = [&](const std::string& text) {
    const size_t at = text_.find(text, found_);
    if (at != std::string::npos) end = std::max(end, at + text.size());
    return at != std::string::npos;
  };
  WaitFor([&] { return !Read() || std::ranges::all_of(texts, is_there); });
  const bool found = std::ranges::all_of(texts, is_there);
  EXPECT_TRUE(found) << "want " << ::testing::PrintToString(texts) << ", got:\n"
                     << text_.substr(found_);
  if (found) found_ = end;
  return found;
}

void TerminalJob::Type(const std::string& keys) const {
  EXPECT_EQ(write(terminal_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

bool TerminalJob::IsRestored() const {
  termios now{};
  tcgetattr(terminal_.get(), &now);
  bool same_modes = now.c_iflag == modes_.c_iflag && now.c_oflag == modes_.c_oflag &&
                    now.c_cflag == modes_.c_cflag && now.c_lflag == modes_.c_lflag &&
                    std::equal(std::begin(now.c_cc), std::end(now.c_cc), modes_.c_cc);
  return same_modes && tcgetpgrp(terminal_.get()) == pid_;
}

std::optional<ProcessExit> TerminalJob::Wait() {
  WaitFor([this] {
    Read();  // so that writes to the terminal do not block
    return exit_ || (exit_ = ReapByPid(pid_)).has_value();
  });
  Read();
  return exit_;
}

bool TerminalJob::Read() {
  char part[4096];
  for (pollfd ready{terminal_.get(), POLLIN, 0}; poll(&ready, 1, 0) > 0;) {
    const ssize_t size = read(terminal_.get(), part, sizeof part);
    if (size <= 0) return false;
    std::copy_if(part, part + size, std::back_inserter(text_), [](char c) { return c != '\r'; });
  }
  return true;
}

}  // namespace rankrun::testing
