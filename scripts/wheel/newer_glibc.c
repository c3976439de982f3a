// Functions of glibc from 2.29 on, for programs and libraries that are linked against glibc 2.28
// (cmake/portable.cmake). Where the running glibc has the function, it is called. All are hidden.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// From 2.32. 0: there may be other threads.
HIDDEN char __libc_single_threaded = 0;

static void* OfRunningGlibc(const char* name) { return dlsym(RTLD_DEFAULT, name); }

// From 2.36.
HIDDEN uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

// From 2.30.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const struct timespec* deadline) {
  typedef int (*Function)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  static Function real;
  static int is_known;
  if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE)) {
    real = (Function)OfRunningGlibc("pthread_cond_clockwait");
    __atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
  }
  if (real != NULL) return real(condition, mutex, clock, deadline);
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, deadline);
  // At most a second by the other clock, which may be set; the caller waits again.
  struct timespec now, until;
  clock_gettime(clock, &now);
  long long left = (deadline->tv_sec - now.tv_sec) * 1000000000LL + deadline->tv_nsec - now.tv_nsec;
  if (left <= 0) left = 0;
  const int is_whole = left <= 1000000000LL;
  if (!is_whole) left = 1000000000LL;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (until.tv_nsec + left) / 1000000000LL;
  until.tv_nsec = (until.tv_nsec + left) % 1000000000LL;
  int result = pthread_cond_timedwait(condition, mutex, &until);
  return result == ETIMEDOUT && !is_whole ? 0 : result;
}

// From 2.30.
HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

// From 2.32.
HIDDEN const char* sigabbrev_np(int number) {
  static const char* const kNames[] = {
      NULL,   "HUP",  "INT",    "QUIT", "ILL",  "TRAP", "ABRT", "BUS",  "FPE",    "KILL", "USR1",
      "SEGV", "USR2", "PIPE",   "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN",
      "TTOU", "URG",  "XCPU",   "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR", "SYS"};
  const int count = (int)(sizeof kNames / sizeof kNames[0]);
  return number > 0 && number < count ? kNames[number] : NULL;
}

// From 2.34. Without it, closes what is open now.
HIDDEN int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions, int from) {
  typedef int (*Function)(posix_spawn_file_actions_t*, int);
  Function real = (Function)OfRunningGlibc("posix_spawn_file_actions_addclosefrom_np");
  if (real != NULL) return real(actions, from);
  DIR* names = opendir("/proc/self/fd");
  if (names == NULL) return errno;
  int result = 0;
  struct dirent* entry;
  while (result == 0 && (entry = readdir(names)) != NULL) {
    int number = atoi(entry->d_name);
    int is_ours = number == dirfd(names);
    // One that closes at exec may be closed already when the child runs.
    int flags = number >= from && !is_ours ? fcntl(number, F_GETFD) : -1;
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) continue;
    result = posix_spawn_file_actions_addclose(actions, number);
  }
  closedir(names);
  return result;
}

// From 2.29. Without it, fails with ENOSYS.
HIDDEN int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t* actions,
                                                const char* path) {
  typedef int (*Function)(posix_spawn_file_actions_t*, const char*);
  Function real = (Function)OfRunningGlibc("posix_spawn_file_actions_addchdir_np");
  return real != NULL ? real(actions, path) : ENOSYS;
}

// From 2.35, for the unwinder in a static libgcc_eh.
struct Search {
  ElfW(Addr) pc;
  struct dl_find_object* result;
};

static int Visit(struct dl_phdr_info* info, size_t size, void* argument) {
  (void)size;
  struct Search* search = argument;
  ElfW(Addr) begin = ~(ElfW(Addr))0, end = 0, frame = 0;
  int has_pc = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    ElfW(Addr) first = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frame = first;
    if (part->p_type != PT_LOAD) continue;
    if (first < begin) begin = first;
    if (first + part->p_memsz > end) end = first + part->p_memsz;
    has_pc |= search->pc >= first && search->pc < first + part->p_memsz;
  }
  if (!has_pc) return 0;
  if (frame == 0) return -1;
  memset(search->result, 0, sizeof *search->result);
  search->result->dlfo_map_start = (void*)begin;
  search->result->dlfo_map_end = (void*)end;
  search->result->dlfo_eh_frame = (void*)frame;
  return 1;
}

HIDDEN int _dl_find_object(void* pc, struct dl_find_object* result) {
  struct Search search = {(ElfW(Addr))pc, result};
  return dl_iterate_phdr(Visit, &search) == 1 ? 0 : -1;
}
