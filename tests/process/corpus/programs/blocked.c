// blocked RANK WAY: a program in C, of librankrun, in which rank RANK hangs or fails by WAY.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rankrun/rankrun.h>

#include "ready.h"

enum { kCount = 1 << 18 };

static float own_values[kCount];

static void Check(rankrun_status status) {
  if (status == RANKRUN_OK) return;
  fprintf(stderr, "blocked: %s\n", rankrun_last_error());
  exit(1);
}

static void Sum(float* values) {
  rankrun_tensor tensor = {.data = values, .count = kCount, .dtype = RANKRUN_FLOAT32};
  Check(rankrun_all_reduce(NULL, &tensor, NULL, RANKRUN_DEFAULT_TIMEOUT, NULL));
}

// As posix_spawn of a program on a file system that does not answer: the kernel lets the parent
// wait, without signals, until the child has called exec.
static void StartATool(void) {
  pid_t child = vfork();
  if (child == 0) {
    for (;;) pause();
  }
}

// Weights in a file that another job makes anew, and shortens.
static float* MapWeights(void) {
  char path[512];
  snprintf(path, sizeof path, "%s/weights", getenv("CORPUS"));
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  const size_t size = kCount * sizeof(float);
  if (fd < 0 || ftruncate(fd, (off_t)size) != 0) exit(99);
  float* weights = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (weights == MAP_FAILED || ftruncate(fd, 0) != 0) exit(99);
  return weights;
}

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  Check(rankrun_init(NULL));
  const int is_culprit = rankrun_global_rank(NULL) == atoi(argv[1]);
  float* values = own_values;
  Ready();
  WaitForAll();
  for (int step = 0; step < 10; ++step) {
    if (step == 3 && is_culprit) {
      if (strcmp(argv[2], "vfork") == 0) StartATool();
      if (strcmp(argv[2], "weights") == 0) values = MapWeights();
    }
    Sum(values);
  }
  Check(rankrun_destroy(NULL));
  return 0;
}
