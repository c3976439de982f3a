// Preloaded by scripts/gpu_test.sh into nccl_tests, which then run on one real GPU. Each
// process counts as a host, because NCCL refuses two ranks of a host on one GPU. Memory of
// the GPU can be read by the host, as that of the fakes.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kAttachGlobal = 1, kInvalidDevice = 101 };

static void TakeHostId(void) {
  char id[32];
  snprintf(id, sizeof id, "rank-%d", (int)getpid());
  setenv("NCCL_HOSTID", id, 1);
}

__attribute__((constructor)) static void Begin(void) {
  TakeHostId();
  pthread_atfork(NULL, NULL, TakeHostId);
}

// The script skips a test that prints such a line.
static void Needs(const char* what) { fprintf(stderr, "one_gpu: this test needs %s\n", what); }

int cudaMalloc(void** memory, size_t bytes) {
  int (*allocate)(void**, size_t, unsigned) =
      (int (*)(void**, size_t, unsigned))dlsym(RTLD_NEXT, "cudaMallocManaged");
  return allocate(memory, bytes > 0 ? bytes : 1, kAttachGlobal);
}

int cudaSetDevice(int device) {
  if (device > 0) {
    Needs("several GPUs");
    return kInvalidDevice;
  }
  return ((int (*)(int))dlsym(RTLD_NEXT, "cudaSetDevice"))(device);
}

void fake_trace_add(const char* line) { (void)line; }
const char* fake_trace_take(void) {
  Needs("the record of the fakes");
  return "";
}
void fake_fail_next(const char* function, int status) {
  (void)function, (void)status;
  Needs("a failure of the fakes");
}
void fake_stall_next(const char* function) {
  (void)function;
  Needs("a failure of the fakes");
}
bool fake_stalls(const char* function) {
  (void)function;
  return false;
}
int fake_status_of(const char* function) {
  (void)function;
  return 0;
}
