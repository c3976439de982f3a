#define _GNU_SOURCE /* memfd_create */

#include "local_all_reduce.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rankrun/c/store.h>

enum { kMaxFloats = 16 * 1024, kStoreWaitMs = 20, kLookEvery = 1024 };

/* A rank's part of the shared memory. Its data alternates between two places: a rank that begins
   call n + 2 knows that all ranks have begun call n + 1, so none still reads call n. */
struct part {
  alignas(64) atomic_uint_fast64_t call; /* number of this rank's last call, from 1 */
  alignas(64) float data[2][kMaxFloats];
};

struct state {
  int rank;
  int ranks;
  uint64_t call; /* number of calls here, not of all calls of the group */
  struct part* parts;
};

static size_t bytes_of(const struct state* state) {
  return (size_t)state->ranks * sizeof(struct part);
}

static rankrun_status fail(rankrun_status status, const char* what, const char* why, char* reason,
                           size_t reason_size) {
  snprintf(reason, reason_size, "%s: %s", what, why);
  return status;
}

/* Reads where rank 0 has the memory: "/proc/<pid>/fd/<number>". */
static rankrun_status find(const rankrun_backend_group* group, char* path, size_t path_size,
                           char* reason, size_t reason_size) {
  rankrun_bytes* value = NULL;
  rankrun_status status;
  do {
    if (group->is_cancelled(group)) {
      return fail(RANKRUN_NETWORK, "shared memory", "rank 0 has none", reason, reason_size);
    }
    status = rankrun_store_get(group->store, "memory", kStoreWaitMs, &value);
  } while (status == RANKRUN_STORE);
  if (status != RANKRUN_OK) {
    return fail(status, "the store", rankrun_last_error(), reason, reason_size);
  }
  snprintf(path, path_size, "%.*s", (int)value->size, (const char*)value->data);
  rankrun_bytes_release(value);
  return RANKRUN_OK;
}

/* Returns a descriptor of the memory, or -1 with `status`. Rank 0 makes it. */
static int memory_of(const rankrun_backend_group* group, size_t bytes, rankrun_status* status,
                     char* reason, size_t reason_size) {
  char path[64];
  int fd;
  if (group->rank != 0) {
    *status = find(group, path, sizeof path, reason, reason_size);
    if (*status != RANKRUN_OK) return -1;
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) *status = fail(RANKRUN_BACKEND, path, strerror(errno), reason, reason_size);
    return fd;
  }
  fd = memfd_create("rankrun_local", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
    *status = fail(RANKRUN_BACKEND, "shared memory", strerror(errno), reason, reason_size);
    return fd;
  }
  int length = snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
  *status = rankrun_store_set(group->store, "memory", path, (size_t)length);
  if (*status != RANKRUN_OK) fail(*status, "the store", rankrun_last_error(), reason, reason_size);
  return fd;
}

/* Waits until all ranks have opened the memory, so that rank 0 may close its descriptor. */
static rankrun_status await_all(const rankrun_backend_group* group, char* reason,
                                size_t reason_size) {
  int64_t come = 0;
  rankrun_status status = rankrun_store_add(group->store, "opened", 1, &come);
  while (status == RANKRUN_OK && come < group->world_size && group->rank == 0) {
    if (group->is_cancelled(group)) {
      return fail(RANKRUN_NETWORK, "shared memory", "another rank lacks it", reason, reason_size);
    }
    sched_yield();
    status = rankrun_store_add(group->store, "opened", 0, &come);
  }
  if (status == RANKRUN_OK) return status;
  return fail(status, "the store", rankrun_last_error(), reason, reason_size);
}

rankrun_status all_reduce_open(void* context, const rankrun_backend_group* group, void** state,
                               char* reason, size_t reason_size) {
  (void)context;
  struct state* made = malloc(sizeof *made);
  if (made == NULL) return fail(RANKRUN_BACKEND, "state", "no memory", reason, reason_size);
  *made = (struct state){.rank = group->rank, .ranks = group->world_size};
  rankrun_status status = RANKRUN_OK;
  int fd = memory_of(group, bytes_of(made), &status, reason, reason_size);
  void* memory = MAP_FAILED;
  if (status == RANKRUN_OK) {
    memory = mmap(NULL, bytes_of(made), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
      status = fail(RANKRUN_BACKEND, "mmap", strerror(errno), reason, reason_size);
    }
  }
  if (status == RANKRUN_OK) status = await_all(group, reason, reason_size);
  if (fd >= 0) close(fd);
  made->parts = memory;
  if (status == RANKRUN_OK) {
    *state = made;
    return status;
  }
  if (memory != MAP_FAILED) munmap(memory, bytes_of(made));
  free(made);
  return status;
}

int all_reduce_takes(void* state, const rankrun_backend_call* call) {
  (void)state;
  return call->kind == RANKRUN_CALL_ALL_REDUCE && call->dtype == RANKRUN_FLOAT32 &&
         call->op == RANKRUN_SUM && call->inputs->size <= kMaxFloats * sizeof(float);
}

/* Waits until a rank has begun this call. Returns 0 if that is in vain. */
static int await_rank(const struct state* state, int rank, const rankrun_backend_call* call) {
  for (int look = 1; atomic_load(&state->parts[rank].call) < state->call; ++look) {
    if (look % kLookEvery != 0) continue;
    if (call->is_cancelled(call)) return 0;
    sched_yield();
  }
  return 1;
}

rankrun_status all_reduce_run(void* opaque, const rankrun_backend_call* call, char* reason,
                              size_t reason_size) {
  struct state* state = opaque;
  struct part* own = &state->parts[state->rank];
  state->call += 1;
  size_t place = state->call % 2;
  memcpy(own->data[place], call->inputs->data, call->inputs->size);
  atomic_store(&own->call, state->call);
  for (int rank = 0; rank < state->ranks; ++rank) {
    if (!await_rank(state, rank, call)) {
      return fail(RANKRUN_BACKEND, "all-reduce", "cancelled", reason, reason_size);
    }
  }
  /* All ranks add in the same order, so all get the same bits. */
  float* sum = call->outputs->data;
  for (size_t i = 0; i < call->outputs->size / sizeof(float); ++i) {
    float total = 0;
    for (int rank = 0; rank < state->ranks; ++rank) total += state->parts[rank].data[place][i];
    sum[i] = total / (float)call->divisor;
  }
  return RANKRUN_OK;
}

void all_reduce_close(void* opaque) {
  struct state* state = opaque;
  munmap(state->parts, bytes_of(state));
  free(state);
}
