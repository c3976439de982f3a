#pragma once

#include <signal.h>

// Sends SIGTRAP to this thread by a system call in the function that uses the macro, in which a
// debugger then stops. `thread`: number of this thread, an int. In C and C++.
#if defined(__x86_64__)
#define RANKRUN_INTERNAL_STOP_HERE(thread)                                           \
  do {                                                                               \
    const long thread_number_ = (thread);                                            \
    long result_;                                                                    \
    __asm__ volatile("syscall"                                                       \
                     : "=a"(result_)                                                 \
                     : "0"(200L /* tkill */), "D"(thread_number_), "S"(0L + SIGTRAP) \
                     : "rcx", "r11", "memory");                                      \
    if (result_ < 0) raise(SIGTRAP);                                                 \
  } while (0)
#elif defined(__aarch64__)
#define RANKRUN_INTERNAL_STOP_HERE(thread)                                             \
  do {                                                                                 \
    register long number_ __asm__("x8") = 130L; /* tkill */                            \
    register long first_ __asm__("x0") = (thread);                                     \
    register long second_ __asm__("x1") = SIGTRAP;                                     \
    __asm__ volatile("svc #0" : "+r"(first_) : "r"(number_), "r"(second_) : "memory"); \
    if (first_ < 0) raise(SIGTRAP);                                                    \
  } while (0)
#else
#define RANKRUN_INTERNAL_STOP_HERE(thread) ((void)(thread), raise(SIGTRAP))
#endif
