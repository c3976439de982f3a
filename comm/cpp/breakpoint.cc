#include <unistd.h>

#include <string>
#include <utility>

#include <rankrun/diagnosis/breakpoint.h>

#include "comm/core/throw.h"
#include "comm/world/contexts.h"

namespace rankrun {

namespace internal {

int BeginStop(GlobalRank rank, int skip, const char* file, int line) {
  const std::string place = std::string(file) + ":" + std::to_string(line);
  auto stops = comm::DefaultContext().Breakpoint({rank.value, skip, place});
  if (!stops) comm::Throw(std::move(stops).error().In("Breakpoint"));
  return *stops ? gettid() : 0;
}

void EndStop() {
  auto ok = comm::DefaultContext().breakpoints().GoOn();
  if (!ok) comm::Throw(std::move(ok).error().In("Breakpoint"));
}

}  // namespace internal

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
