// mourner HOW WAITERS: a worker that prints the errors that the death of rank 1
// causes. Rank 1 kills itself. The other ranks wait, in WAITERS threads, for a key
// that is never set. HOW is their disposition of SIGTERM: "blocked" accepts it after
// the waits, "handled" prints whether the status page has the death, "ignored"
// ignores it.

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/dist_error.h>
#include <rankrun/store.h>

#include "base/status/status_page.h"

namespace {

using rankrun::StatusPage;

const StatusPage* status_page;
volatile sig_atomic_t term_came = 0;

// Writes with one system call, so that a signal handler can use it.
void Say(const char* text, size_t size) {
  if (write(STDOUT_FILENO, text, size) != static_cast<ssize_t>(size)) _exit(98);
}
void Say(const std::string& line) { Say(line.data(), line.size()); }

void OnTerm(int) {
  term_came = 1;
  constexpr char kTold[] = "TERM, told\n";
  constexpr char kNotTold[] = "TERM, not told\n";
  if (status_page->has_peer_death()) {
    Say(kTold, sizeof kTold - 1);
  } else {
    Say(kNotTold, sizeof kNotTold - 1);
  }
}

void Take(const std::string& how) {
  if (how == "handled") signal(SIGTERM, OnTerm);
  if (how == "ignored") signal(SIGTERM, SIG_IGN);
  if (how != "blocked") return;
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);
}

void Await(rankrun::Store& store) {
  try {
    store.Wait({"never"});
    Say("come\n");
  } catch (const rankrun::DistNetworkError& error) {
    Say(std::string(error.what()) + "\n");
  }
}

void Mourn(rankrun::Store& store, int waiters) {
  std::vector<std::unique_ptr<rankrun::Store>> clones;
  std::vector<std::thread> threads;
  for (int i = 0; i < waiters; ++i) clones.push_back(store.Clone());
  for (auto& clone : clones) threads.emplace_back([&clone] { Await(*clone); });
  store.Add("mourners", 1);
  for (std::thread& thread : threads) thread.join();
}

void TakeBlockedTerm() {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  int number = 0;
  if (sigwait(&term, &number) == 0) Say("TERM\n");
}

void Die(rankrun::Store& store, int others) {
  while (store.Add("mourners", 0) < others) std::this_thread::yield();
  raise(SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  std::string how = argv[1];
  auto page = StatusPage::FromEnvironment();
  if (!page) return 97;
  status_page = &*page;
  Take(how);
  rankrun::TcpStore store({.host = std::getenv("MASTER_ADDR"),
                           .port = static_cast<uint16_t>(std::atoi(std::getenv("MASTER_PORT")))});
  if (std::getenv("RANK") == std::string("1")) Die(store, std::atoi(std::getenv("WORLD_SIZE")) - 1);
  Mourn(store, std::atoi(argv[2]));
  if (how == "blocked") TakeBlockedTerm();
  while (how == "handled" && term_came == 0) poll(nullptr, 0, 10);  // SIGKILL ends it at the latest
}
