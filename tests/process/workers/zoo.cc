// zoo ANIMAL END: a worker that is hard to kill. It starts processes of one kind and
// prints "up" once all of them exist. Then it exits with the code END. If END is
// "stay", it becomes a process of that kind itself. "zoo bystander" only sleeps.

#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include <rankrun/distributed.h>

namespace {

int ready_pipe[2];

void Forever() {
  for (;;) pause();
}

void Ignore() {
  for (int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) signal(number, SIG_IGN);
}

void CloseAll() { syscall(SYS_close_range, 0U, ~0U, 0); }

void StopAgainAndAgain() {
  for (;;) raise(SIGSTOP);
}

void Sleep() { execl("/bin/sleep", "sleep", "1000", static_cast<char*>(nullptr)); }

void Tell() {
  if (write(ready_pipe[1], "", 1) != 1) _exit(98);
}

void Start(const std::function<void()>& live) {
  if (fork() != 0) return;
  live();
  _exit(97);
}

void StartMany(int count, const std::function<void()>& prepare, const std::function<void()>& live) {
  for (int i = 0; i < count; ++i) {
    Start([&] {
      prepare();
      Tell();
      live();
    });
  }
  char byte;
  for (int i = 0; i < count; ++i) {
    if (read(ready_pipe[0], &byte, 1) != 1) _exit(96);
  }
}

void Detach() {
  setsid();
  if (fork() != 0) _exit(0);
  setsid();
}

void Nothing() {}

struct Animal {
  const char* name;
  int count;
  void (*prepare)();  // runs before the process reports that it exists
  void (*live)();
};

constexpr Animal kAnimals[] = {
    {"daemons", 3, Detach, Forever},
    {"sessions", 3, [] { setsid(); }, Forever},
    {"stubborn", 3, Ignore, Forever},
    {"stopped", 3, Nothing, StopAgainAndAgain},
    {"closed", 3, Nothing,
     [] {
       CloseAll();
       Forever();
     }},
    {"executed", 3, Nothing, Sleep},
    {"uninterruptible", 1, Nothing,
     [] {
       // ThreadSanitizer turns vfork() into fork(), so this calls the kernel.
       if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) Forever();
     }},
    {"saver", 0,
     [] {
       Ignore();
       static rankrun::SavingNotice notice;
       if (!notice.heard()) _exit(94);
       if (write(STDOUT_FILENO, "saving\n", 7) != 7) _exit(98);
     },
     Forever},
    {"bomb", 200,
     [] {
       setsid();
       Ignore();
     },
     Forever},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) Forever();
  if (argc != 3 || pipe(ready_pipe) != 0) return 99;
  for (const Animal& animal : kAnimals) {
    if (animal.name != std::string(argv[1])) continue;
    StartMany(animal.count, animal.prepare, animal.live);
    if (write(STDOUT_FILENO, "up\n", 3) != 3) return 98;
    if (argv[2] != std::string("stay")) _exit(std::atoi(argv[2]));
    bool would_fork = animal.prepare == Detach;
    if (!would_fork) animal.prepare();
    animal.live();
  }
  return 95;
}
