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

std::string BreakpointInside(GlobalRank rank, int skip, const char* file, int line) {
  const std::string place = std::string(file) + ":" + std::to_string(line);
  auto ok = comm::DefaultContext().Breakpoint({rank.value, skip, place, true});
  if (!ok) comm::Throw(std::move(ok).error().In("BreakpointInside"));
  return comm::DefaultContext().breakpoints().terminal();
}

void LetOthersGoOn() {
  comm::GroupTable& table = comm::DefaultContext();
  auto ok = table.CheckHome();
  if (ok) ok = table.breakpoints().LetOthersGoOn();
  if (!ok) comm::Throw(std::move(ok).error().In("LetOthersGoOn"));
}

void ReturnTerminal() {
  comm::GroupTable& table = comm::DefaultContext();
  auto ok = table.CheckHome();
  if (ok) ok = table.breakpoints().ReturnTerminal();
  if (!ok) comm::Throw(std::move(ok).error().In("ReturnTerminal"));
}

}  // namespace rankrun
