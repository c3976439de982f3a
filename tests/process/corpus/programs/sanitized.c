// sanitized RANK WAY: a sanitizer ends rank RANK once all ranks are there.

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ready.h"

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  Ready();
  WaitForAll();
  if (atoi(getenv("RANK")) == atoi(argv[1])) {
    if (strcmp(argv[2], "overflow") == 0) {
      char* volatile block = malloc(16);
      block[16 + argc - 3] = 1;
      free(block);
    }
    if (strcmp(argv[2], "integer") == 0) {
      volatile int largest = INT_MAX;
      largest += argc;
    }
    return 98;
  }
  sleep(60);
  return 97;
}
