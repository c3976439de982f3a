#include <rankrun/c/breakpoint.h>
#include <rankrun/diagnosis/breakpoint.h>

#include "comm/c/c_guard.h"

using rankrun::GlobalRank;
using rankrun::comm::Clear;
using rankrun::comm::CopyOf;
using rankrun::comm::Guarded;
using rankrun::comm::NotNull;
using rankrun::comm::Text;

extern "C" {

rankrun_status rankrun_breakpoint_at(int rank, int skip, const char* file, int line) {
  return Guarded([&] { rankrun::Breakpoint(GlobalRank{rank}, skip, Text(file, "file"), line); });
}

rankrun_status rankrun_internal_begin_stop(int rank, int skip, const char* file, int line,
                                           int* thread) {
  return Guarded([&] {
    NotNull(thread, "thread") =
        rankrun::internal::BeginStop(GlobalRank{rank}, skip, Text(file, "file"), line);
  });
}

rankrun_status rankrun_internal_end_stop(void) {
  return Guarded([] { rankrun::internal::EndStop(); });
}

rankrun_status rankrun_breakpoint_inside(int rank, int skip, const char* file, int line,
                                         rankrun_bytes** terminal) {
  return Guarded([&] {
    Clear(terminal, "terminal");
    const std::string path =
        rankrun::BreakpointInside(GlobalRank{rank}, skip, Text(file, "file"), line);
    if (!path.empty()) *terminal = CopyOf(path);
  });
}

rankrun_status rankrun_let_others_go_on(void) {
  return Guarded([] { rankrun::LetOthersGoOn(); });
}

rankrun_status rankrun_return_terminal(void) {
  return Guarded([] { rankrun::ReturnTerminal(); });
}

}  // extern "C"
