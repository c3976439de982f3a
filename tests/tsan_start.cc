// ThreadSanitizer's runtime makes a thread's record of signals when the thread
// first waits or is signalled, and loses a signal that comes while it makes it.
// So the main thread waits once, in front of main.

#include <poll.h>

namespace {

__attribute__((constructor)) void WaitOnce() { poll(nullptr, 0, 0); }

}  // namespace
