#ifndef CORPUS_READY_H_
#define CORPUS_READY_H_

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// For the C and C++ programs of the corpus: as common.sh.

static inline void ReadyPath(char* path, size_t size, const char* prefix, int rank) {
  const char* attempt = getenv("TORCHELASTIC_RESTART_COUNT");
  snprintf(path, size, "%s/%s%s.%d", getenv("CORPUS"), prefix, attempt ? attempt : "0", rank);
}

static inline void Ready(void) {
  char hidden[512];
  char path[512];
  int rank = atoi(getenv("RANK"));
  ReadyPath(hidden, sizeof hidden, ".", rank);
  ReadyPath(path, sizeof path, "ready.", rank);
  FILE* file = fopen(hidden, "w");
  if (file == NULL) exit(96);
  fprintf(file, "%d\n", (int)getpid());
  if (fclose(file) != 0 || rename(hidden, path) != 0) exit(96);
}

static inline void WaitForAll(void) {
  int size = atoi(getenv("WORLD_SIZE"));
  for (int rank = 0; rank < size; ++rank) {
    char path[512];
    ReadyPath(path, sizeof path, "ready.", rank);
    while (access(path, F_OK) != 0) usleep(5000);
  }
}

#endif  // CORPUS_READY_H_
