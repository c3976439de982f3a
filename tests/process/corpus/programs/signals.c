// signals RANK WAY: rank RANK dies by WAY once all ranks are there. The others wait.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ready.h"

static void* WriteToNull(void* unused) {
  (void)unused;
  *(volatile int*)16 = 1;
  return NULL;
}

static int Recurse(volatile char* above) {
  volatile char here[4096];
  here[0] = above[0];
  return here[0] + Recurse(here);
}

// Writes to a mapped page behind the end of its file.
static void WriteBehindTheEnd(void) {
  char path[] = "/tmp/corpus-XXXXXX";
  int fd = mkstemp(path);
  unlink(path);
  if (ftruncate(fd, 1) != 0) exit(99);
  volatile char* page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  page[4096] = 1;
}

// A file over the limit raises SIGXFSZ, CPU time over its limit SIGXCPU.
static void ExceedTheFileLimit(void) {
  struct rlimit limit = {4096, 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  char path[] = "/tmp/corpus-XXXXXX";
  int fd = mkstemp(path);
  unlink(path);
  char page[8192] = {0};
  if (write(fd, page, sizeof page) > 0 && write(fd, page, sizeof page) < 0) exit(99);
}

static void ExceedTheCpuLimit(void) {
  struct rlimit limit = {1, 5};
  setrlimit(RLIMIT_CPU, &limit);
  for (volatile int i = 0;; ++i) {
  }
}

static void BreakAPipe(void) {
  int ends[2];
  if (pipe(ends) != 0) exit(99);
  close(ends[0]);
  if (write(ends[1], "x", 1) < 0) exit(99);
}

static void Die(const char* way) {
  pthread_t thread;
  if (strcmp(way, "thread") == 0) {
    pthread_create(&thread, NULL, WriteToNull, NULL);
    pthread_join(thread, NULL);
  }
  if (strcmp(way, "null") == 0) WriteToNull(NULL);
  if (strcmp(way, "stack") == 0) exit(Recurse("x"));
  if (strcmp(way, "bus") == 0) WriteBehindTheEnd();
  if (strcmp(way, "file-limit") == 0) ExceedTheFileLimit();
  if (strcmp(way, "cpu-limit") == 0) ExceedTheCpuLimit();
  if (strcmp(way, "pipe") == 0) BreakAPipe();
  int number = atoi(way);
  if (number > 0) raise(number);
}

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  Ready();
  WaitForAll();
  if (atoi(getenv("RANK")) == atoi(argv[1])) {
    Die(argv[2]);
    return 98;
  }
  sleep(60);
  return 97;
}
