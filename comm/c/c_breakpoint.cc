#include <rankrun/c/breakpoint.h>
#include <rankrun/diagnosis/breakpoint.h>

#include "comm/c/c_guard.h"

using rankrun::GlobalRank;
using rankrun::comm::Guarded;
using rankrun::comm::Text;

extern "C" {

rankrun_status rankrun_breakpoint_at(int rank, int skip, const char* file, int line) {
  return Guarded([&] { rankrun::Breakpoint(GlobalRank{rank}, skip, Text(file, "file"), line); });
}

}  // extern "C"
