// bare_loop N PROGRAM: the baseline for rankrun, with the least work that a
// launcher can do. Starts N processes by vfork and exec, then waits for all of
// them.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

extern char** environ;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: bare_loop N PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  int count = std::atoi(argv[1]);
  for (int i = 0; i < count; ++i) {
    pid_t pid = vfork();
    if (pid == 0) {
      execve(argv[2], argv + 2, environ);
      _exit(127);
    }
    if (pid < 0) return 1;
  }
  while (wait(nullptr) > 0) {
  }
  return 0;
}
