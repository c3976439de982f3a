// stages RANK WAY: a program in C, of librankrun, in which rank RANK fails or hangs by WAY at step 3.

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rankrun/rankrun.h>

#include "ready.h"

static const char* way;
static int is_culprit;

static void Check(rankrun_status status) {
  if (status == RANKRUN_OK) return;
  fprintf(stderr, "stages: %s\n", rankrun_last_error());
  exit(is_culprit ? 2 : 1);
}

static void Sum(rankrun_group* group) {
  float values[16] = {0};
  rankrun_tensor tensor = {.data = values, .count = 16, .dtype = RANKRUN_FLOAT32};
  Check(rankrun_all_reduce(group, &tensor, NULL, RANKRUN_DEFAULT_TIMEOUT, NULL));
}

// A root that is no rank of the group: the library refuses the call.
static void BroadcastFromNobody(void) {
  float values[16] = {0};
  rankrun_tensor tensor = {.data = values, .count = 16, .dtype = RANKRUN_FLOAT32};
  Check(rankrun_broadcast(NULL, &tensor, 7, RANKRUN_DEFAULT_TIMEOUT, NULL));
}

// As a tokenizer in a process of its own, which does not answer.
static void ReadFromAChild(void) {
  char line[64];
  FILE* child = popen("exec sleep 3600", "r");
  if (child == NULL || fgets(line, sizeof line, child) == NULL) exit(99);
}

// As a mark that a process which has died should have made.
static void PollForAMark(void) {
  char path[512];
  snprintf(path, sizeof path, "%s/shuffled", getenv("CORPUS"));
  while (access(path, F_OK) != 0) usleep(50000);
}

static sem_t sample_is_there;

static void* Load(void* unused) {
  char bytes[64];
  int ends[2];
  if (pipe(ends) != 0 || read(ends[0], bytes, sizeof bytes) <= 0) exit(99);
  sem_post(&sample_is_there);
  return unused;
}

// The main thread waits for a thread, which waits for data.
static void WaitForTheLoader(void) {
  pthread_t loader;
  sem_init(&sample_is_there, 0, 0);
  if (pthread_create(&loader, NULL, Load, NULL) != 0) exit(99);
  sem_wait(&sample_is_there);
}

// A value goes from the last rank to the first, each time through all between them.
static void PassOn(int rank, int size) {
  double value = 1;
  rankrun_tensor tensor = {.data = &value, .count = 1, .dtype = RANKRUN_FLOAT64};
  if (rank + 1 < size) {
    Check(rankrun_recv(NULL, &tensor, rank + 1, 0, RANKRUN_DEFAULT_TIMEOUT, NULL));
  }
  if (rank > 0) Check(rankrun_send(NULL, &tensor, rank - 1, 0, RANKRUN_DEFAULT_TIMEOUT));
}

static void Fail(void) {
  if (strcmp(way, "refused") == 0) BroadcastFromNobody();
  if (strcmp(way, "chain") == 0) ReadFromAChild();
  if (strcmp(way, "pair") == 0) PollForAMark();
  if (strcmp(way, "loader") == 0) WaitForTheLoader();
}

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  way = argv[2];
  rankrun_init_options options = {.size = sizeof options};
  Check(rankrun_init_options_default(&options));
  options.timeout_ms = 60000;
  Check(rankrun_init(&options));
  const int rank = rankrun_global_rank(NULL);
  const int size = rankrun_world_size(NULL);
  is_culprit = rank == atoi(argv[1]);

  // The last two ranks have a group of their own, as those that share a layer.
  const int32_t last_two[2] = {size - 2, size - 1};
  rankrun_group_options group_options = {.size = sizeof group_options};
  Check(rankrun_group_options_default(&group_options));
  group_options.ranks = last_two;
  group_options.ranks_count = 2;
  rankrun_group* pair;
  Check(rankrun_new_group(&group_options, &pair));

  Ready();
  WaitForAll();
  for (int step = 0; step < 10; ++step) {
    if (step == 3 && is_culprit) Fail();
    if (strcmp(way, "pair") == 0 && rankrun_is_member(pair)) Sum(pair);
    if (strcmp(way, "chain") == 0) {
      PassOn(rank, size);
    } else {
      Sum(NULL);
    }
  }
  Check(rankrun_destroy(NULL));
  return 0;
}
