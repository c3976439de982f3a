// aborts RANK WAY: rank RANK is aborted by WAY of the C library once all ranks are there.

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ready.h"

static void FreeTwice(void) {
  void* volatile first = malloc(4000);
  void* volatile second = malloc(4000);
  free(first);
  free(first);
  free(second);
}

static void FreeInvalid(void) {
  char* volatile block = malloc(100);
  free(block + 8);
}

static void* volatile escaped;

static __attribute__((noinline)) void SmashTheStack(size_t size) {
  char here[16];
  escaped = here;
  memset(escaped, 'x', size);
}

static void Die(const char* way, int ranks) {
  if (strcmp(way, "assert") == 0) assert(ranks == 7 && "the world has seven ranks");
  if (strcmp(way, "twice") == 0) FreeTwice();
  if (strcmp(way, "invalid") == 0) FreeInvalid();
  if (strcmp(way, "smash") == 0) SmashTheStack(60);
  if (strcmp(way, "message") == 0) {
    fprintf(stderr, "solver: matrix is singular at row 17\n");
    abort();
  }
  if (strcmp(way, "silent") == 0) abort();
}

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  Ready();
  WaitForAll();
  if (atoi(getenv("RANK")) == atoi(argv[1])) {
    Die(argv[2], atoi(getenv("WORLD_SIZE")));
    return 98;
  }
  sleep(60);
  return 97;
}
