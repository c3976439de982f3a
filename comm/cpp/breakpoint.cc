#include <string>
#include <utility>

#include <rankrun/diagnosis/breakpoint.h>

#include "comm/core/throw.h"
#include "comm/world/contexts.h"

namespace rankrun {

void Breakpoint(GlobalRank rank, int skip, const char* file, int line) {
  const std::string place = std::string(file) + ":" + std::to_string(line);
  auto ok = comm::DefaultContext().Breakpoint({rank.value, skip, place});
  if (!ok) comm::Throw(std::move(ok).error().In("Breakpoint"));
}

}  // namespace rankrun
