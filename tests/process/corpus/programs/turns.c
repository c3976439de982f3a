// turns RANK WAY: a program in C, of librankrun, in which rank RANK waits for ever at step 3, for the
// one after it, which waits for RANK ("cycle"), or for a child process ("child").

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rankrun/rankrun.h>

#include "ready.h"

static void Check(rankrun_status status) {
  if (status == RANKRUN_OK) return;
  fprintf(stderr, "turns: %s\n", rankrun_last_error());
  exit(1);
}

static void Sum(void) {
  float values[16] = {0};
  rankrun_tensor tensor = {.data = values, .count = 16, .dtype = RANKRUN_FLOAT32};
  Check(rankrun_all_reduce(NULL, &tensor, NULL, RANKRUN_DEFAULT_TIMEOUT, NULL));
}

static void ReceiveFrom(int rank) {
  float values[16];
  rankrun_tensor tensor = {.data = values, .count = 16, .dtype = RANKRUN_FLOAT32};
  Check(rankrun_recv(NULL, &tensor, rank, 0, RANKRUN_DEFAULT_TIMEOUT, NULL));
}

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  const int culprit = atoi(argv[1]);
  const int is_cycle = strcmp(argv[2], "cycle") == 0;
  rankrun_init_options options = {.size = sizeof options};
  Check(rankrun_init_options_default(&options));
  options.timeout_ms = 60000;
  Check(rankrun_init(&options));
  const int rank = rankrun_global_rank(NULL);
  Ready();
  WaitForAll();
  for (int step = 0; step < 10; ++step) {
    // Each should have sent its halo first.
    if (step == 3 && is_cycle && rank == culprit) ReceiveFrom(culprit + 1);
    if (step == 3 && is_cycle && rank == culprit + 1) ReceiveFrom(culprit);
    if (step == 3 && !is_cycle && rank == culprit && system("exec sleep 3600") != 0) return 98;
    Sum();
  }
  Check(rankrun_destroy(NULL));
  return 0;
}
