// mapped FOLDER: writes more to a mapped file in FOLDER than its file system can hold.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  char path[512];
  snprintf(path, sizeof path, "%s/shared", argv[1]);
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 1 << 20) != 0) return 99;
  char* memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 99;
  memset(memory, 1, 1 << 20);
  return 98;
}
