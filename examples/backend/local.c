/* A backend for the ranks of one host, by UNIX-domain sockets:

     cmake -S examples/backend -B /tmp/backend && cmake --build /tmp/backend
     RANKRUN_PLUGIN_DIR=/tmp/backend RANKRUN_BACKEND=local rankrun -n 4 pi

   Each rank listens in a folder that only its user can enter, and publishes the
   path in the store. Of two ranks, the higher one connects to the lower one, and
   says which rank it is and which of the two connections this one is.
   local_all_reduce.c has a collective of the backend's own. */

#define _GNU_SOURCE /* accept4, mkdtemp */

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rankrun/backend.h>
#include <rankrun/c/store.h>
#include <rankrun/export.h>

#include "local_all_reduce.h"

enum {
  kPerPeer = 2,
  kLookEveryMs = 20,
  kMaxFolder = sizeof(((struct sockaddr_un*)0)->sun_path) - 2
};

/* First bytes on a connection. */
struct hello {
  int32_t rank;  /* that connects */
  int32_t index; /* of the connection, 0 or 1 */
};

/* What connecting needs; `status` is the result of the first step that failed. */
struct attempt {
  const rankrun_backend_group* group;
  rankrun_connection* connections;
  int64_t deadline_ms;
  char folder[kMaxFolder];
  struct sockaddr_un address; /* of the listener: <folder>/s */
  int listener;
  rankrun_status status;
  char* reason;
  size_t reason_size;
};

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Records why connecting fails. Returns 0. */
static int fail(struct attempt* attempt, rankrun_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(attempt->reason, attempt->reason_size, format, arguments);
  va_end(arguments);
  attempt->status = status;
  return 0;
}

static int fail_by_errno(struct attempt* attempt, const char* what) {
  return fail(attempt, RANKRUN_BACKEND, "%s: %s", what, strerror(errno));
}

static void keep(struct attempt* attempt, int rank, int index, int fd) {
  int* state = malloc(sizeof *state);
  if (state == NULL) abort();
  *state = fd;
  rankrun_connection* connection = &attempt->connections[kPerPeer * rank + index];
  connection->state = state;
  connection->fd = fd;
}

/* Listens, and publishes where. */
static int listen_and_publish(struct attempt* attempt) {
  const char* base = getenv("TMPDIR");
  int length = snprintf(attempt->folder, sizeof attempt->folder, "%s/rankrun_local_XXXXXX",
                        base != NULL && *base != '\0' ? base : "/tmp");
  if (length >= (int)sizeof attempt->folder) {
    attempt->folder[0] = '\0';
    return fail(attempt, RANKRUN_BACKEND, "the path in TMPDIR is longer than a socket's may be");
  }
  if (mkdtemp(attempt->folder) == NULL) {
    attempt->folder[0] = '\0';
    return fail_by_errno(attempt, "make a folder in TMPDIR, or in /tmp");
  }
  attempt->address.sun_family = AF_UNIX;
  snprintf(attempt->address.sun_path, sizeof attempt->address.sun_path, "%s/s", attempt->folder);
  attempt->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (attempt->listener < 0) return fail_by_errno(attempt, "socket");
  if (bind(attempt->listener, (struct sockaddr*)&attempt->address, sizeof attempt->address) != 0 ||
      listen(attempt->listener, kPerPeer * attempt->group->world_size) != 0) {
    return fail_by_errno(attempt, attempt->address.sun_path);
  }
  char key[32];
  snprintf(key, sizeof key, "path/%d", attempt->group->rank);
  const char* path = attempt->address.sun_path;
  rankrun_status status = rankrun_store_set(attempt->group->store, key, path, strlen(path));
  if (status != RANKRUN_OK) return fail(attempt, status, "%s", rankrun_last_error());
  return 1;
}

/* Returns 0 if it is in vain to wait any longer for what `missing` names. */
static int may_wait(struct attempt* attempt, const char* missing, int rank) {
  if (attempt->group->is_cancelled(attempt->group)) {
    return fail(attempt, RANKRUN_NETWORK, "another rank cannot connect");
  }
  if (now_ms() < attempt->deadline_ms) return 1;
  return fail(attempt, RANKRUN_TIMEOUT, "%s rank %d after %lld ms", missing,
              (int)attempt->group->global_ranks[rank], (long long)attempt->group->timeout_ms);
}

/* Waits until `fd` is readable; with fd -1, a short time only. */
static int wait_for(struct attempt* attempt, int fd, const char* missing, int rank) {
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  do {
    if (!may_wait(attempt, missing, rank)) return 0;
  } while (poll(&wait, 1, kLookEveryMs) <= 0 && fd >= 0);
  return 1;
}

/* Reads where a lower rank listens. */
static int find(struct attempt* attempt, int rank, struct sockaddr_un* address) {
  char text[32];
  snprintf(text, sizeof text, "path/%d", rank);
  const char* key = text;
  int exists = 0;
  while (rankrun_store_check(attempt->group->store, &key, 1, &exists) == RANKRUN_OK && !exists) {
    if (!wait_for(attempt, -1, "no path from", rank)) return 0;
  }
  rankrun_bytes* path = NULL;
  rankrun_status status =
      exists ? rankrun_store_get(attempt->group->store, key, 0, &path) : RANKRUN_STORE;
  if (status != RANKRUN_OK) return fail(attempt, status, "%s", rankrun_last_error());
  address->sun_family = AF_UNIX;
  snprintf(address->sun_path, sizeof address->sun_path, "%.*s", (int)path->size,
           (const char*)path->data);
  rankrun_bytes_release(path);
  return 1;
}

/* Connects to a lower rank. It listens already; if it does so no more, it has
   failed, and soon says why. */
static int connect_to(struct attempt* attempt, int rank) {
  struct sockaddr_un address = {.sun_family = AF_UNSPEC};
  if (!find(attempt, rank, &address)) return 0;
  for (int index = 0; index < kPerPeer; ++index) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fail_by_errno(attempt, "socket");
    keep(attempt, rank, index, fd);
    while (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) {
      if (!wait_for(attempt, -1, "no connection with", rank)) return 0;
    }
    const struct hello hello = {.rank = attempt->group->rank, .index = index};
    if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello) {
      return fail_by_errno(attempt, address.sun_path);
    }
  }
  return 1;
}

/* Returns the first higher rank that has not made both connections. */
static int first_missing(const struct attempt* attempt) {
  int last = kPerPeer * attempt->group->world_size - 1;
  int i = kPerPeer * (attempt->group->rank + 1);
  while (i < last && attempt->connections[i].state != NULL) ++i;
  return i / kPerPeer;
}

/* Accepts one connection of a higher rank. */
static int accept_one(struct attempt* attempt) {
  int missing = first_missing(attempt);
  if (!wait_for(attempt, attempt->listener, "no connection with", missing)) return 0;
  int fd = accept4(attempt->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return errno == EINTR ? accept_one(attempt) : fail_by_errno(attempt, "accept");
  struct hello hello;
  ssize_t got = -1;
  if (wait_for(attempt, fd, "no hello from", missing)) got = recv(fd, &hello, sizeof hello, 0);
  if (got == (ssize_t)sizeof hello && hello.rank > attempt->group->rank &&
      hello.rank < attempt->group->world_size && (hello.index == 0 || hello.index == 1) &&
      attempt->connections[kPerPeer * hello.rank + hello.index].state == NULL) {
    keep(attempt, hello.rank, hello.index, fd);
    return 1;
  }
  close(fd);
  if (attempt->status != RANKRUN_OK) return 0;
  return fail(attempt, RANKRUN_BACKEND, "a connection did not say which one it is");
}

static int connect_all(struct attempt* attempt) {
  if (!listen_and_publish(attempt)) return 0;
  for (int rank = 0; rank < attempt->group->rank; ++rank) {
    if (!connect_to(attempt, rank)) return 0;
  }
  int higher = attempt->group->world_size - 1 - attempt->group->rank;
  for (int i = 0; i < kPerPeer * higher; ++i) {
    if (!accept_one(attempt)) return 0;
  }
  return 1;
}

static void local_shut_down(void* state) { shutdown(*(int*)state, SHUT_RDWR); }

static void local_close(void* state) {
  close(*(int*)state);
  free(state);
}

static rankrun_status local_connect(void* context, const rankrun_backend_group* group,
                                    rankrun_connection* connections, char* reason,
                                    size_t reason_size) {
  (void)context;
  struct attempt attempt = {.group = group,
                            .connections = connections,
                            .deadline_ms = now_ms() + group->timeout_ms,
                            .listener = -1,
                            .status = RANKRUN_OK,
                            .reason = reason,
                            .reason_size = reason_size};
  for (int rank = 0; rank < group->world_size; ++rank) {
    if (strcmp(group->hosts[rank], group->hosts[group->rank]) != 0) {
      fail(&attempt, RANKRUN_BACKEND, "rank %d is on another host: want tcp",
           (int)group->global_ranks[rank]);
      return attempt.status;
    }
  }
  if (!connect_all(&attempt)) {
    for (int i = 0; i < kPerPeer * group->world_size; ++i) {
      if (connections[i].state != NULL) local_close(connections[i].state);
    }
  }
  if (attempt.listener >= 0) close(attempt.listener);
  if (attempt.address.sun_path[0] != '\0') unlink(attempt.address.sun_path);
  if (attempt.folder[0] != '\0') rmdir(attempt.folder);
  return attempt.status;
}

static struct msghdr message_of(const struct iovec* parts, int count) {
  struct msghdr message = {.msg_iov = (struct iovec*)parts, .msg_iovlen = (size_t)count};
  return message;
}

static ssize_t local_send(void* state, const struct iovec* parts, int count) {
  const struct msghdr message = message_of(parts, count);
  ssize_t sent = sendmsg(*(int*)state, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 ? -errno : sent;
}

static ssize_t local_receive(void* state, const struct iovec* parts, int count) {
  struct msghdr message = message_of(parts, count);
  ssize_t received = recvmsg(*(int*)state, &message, MSG_DONTWAIT);
  return received < 0 ? -errno : received;
}

RANKRUN_API const rankrun_backend* rankrun_backend_entry(void);
const rankrun_backend* rankrun_backend_entry(void) {
  static const rankrun_backend backend = {.size = sizeof backend,
                                          .version = RANKRUN_BACKEND_VERSION,
                                          .name = "local",
                                          .connect = local_connect,
                                          .send = local_send,
                                          .receive = local_receive,
                                          .shut_down = local_shut_down,
                                          .close = local_close,
                                          .open_group = all_reduce_open,
                                          .takes = all_reduce_takes,
                                          .run = all_reduce_run,
                                          .close_group = all_reduce_close};
  return &backend;
}
