// The part of GroupTable that stops one rank in a debugger.

#include "comm/world/breakpoint.h"

#include <chrono>
#include <utility>

#include "base/status/activity.h"
#include "base/status/status_page.h"
#include "comm/world/group_table.h"
#include "comm/world/held_rank.h"

namespace rankrun::comm {
namespace {

// A wait for the store does not see the loss of a connection between ranks.
constexpr std::chrono::milliseconds kBetweenLooks{200};

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

Result<void> Check(const BreakpointCall& call, int world_size) {
  if (call.skip < 0) {
    return Invalid("skip is " + std::to_string(call.skip) + ": want a number of calls");
  }
  if (call.global_rank >= 0 && call.global_rank < world_size) return {};
  return Invalid("rank is " + std::to_string(call.global_rank) + ": want 0 to " +
                 std::to_string(world_size - 1));
}

}  // namespace

Result<bool> GroupTable::Breakpoint(const BreakpointCall& call) {
  if (world() == nullptr) return Invalid("there is no world process group: call Init() first");
  if (auto ok = CheckHome(); !ok) return std::move(ok).error();
  const GroupIdentity& all = TheWorld().identity();
  if (auto ok = Check(call, all.world_size()); !ok) return Refuse(ok.error());
  const std::string wishes = "a breakpoint of rank " + std::to_string(call.global_rank) +
                             " that skips " + std::to_string(call.skip) + " calls";
  int& skipped = world_.breakpoints.skipped[call.place + " " + wishes];
  const bool skips = skipped < call.skip;
  if (skips && ++skipped > 1) return false;
  const TimePoint deadline = std::chrono::steady_clock::now() + all.timeout;
  if (auto ok = Agree(wishes, deadline); !ok) return ok.error();
  if (skips) return false;
  return Hold(call);
}

Result<bool> GroupTable::Hold(const BreakpointCall& call) {
  Group& world = TheWorld();
  const GroupIdentity& all = world.identity();
  store::Store& store = *world_.meeting_store;
  const std::string prefix = all.key_prefix + "/breakpoint/";
  const int hold = world_.breakpoints.holds++;
  const std::string key = prefix + std::to_string(hold);
  auto find_failure = [this, &world](TimePoint since) {
    auto aborted = live_.WorldAborted();
    return aborted ? aborted : world.FindFailure("Breakpoint", since);
  };
  if (call.global_rank == all.global_rank) {
    // All ranks have called again, so they have left the breakpoint before.
    static_cast<void>(store.Delete(prefix + std::to_string(hold - 1)));
    const HeldRank rank{all.global_rank, call.place, all.deaths, find_failure};
    if (call.debugs_itself) {
      world_.breakpoints.store = &store;
      world_.breakpoints.awaited_key = key;
      if (auto ok = world_.breakpoints.Borrow(rank); !ok) return std::move(ok).error();
      return false;
    }
    auto stop = DebuggerStop::Await(rank);
    if (!stop) return std::move(stop).error();
    world_.breakpoints.store = &store;
    world_.breakpoints.stop_key = key;
    world_.breakpoints.stop = *std::move(stop);
    if (world_.breakpoints.stop != nullptr) return true;
    if (auto ok = world_.breakpoints.GoOn(); !ok) return std::move(ok).error();
    return false;
  }
  Awaited awaited(StatusPage::OfThisProcess(),
                  std::string(kBreakpointWait) + std::to_string(call.global_rank));
  const TimePoint began = std::chrono::steady_clock::now();
  for (;;) {
    auto released = store.Get(key, kBetweenLooks);
    if (released) return false;
    if (auto failure = find_failure(began)) return *std::move(failure);
    if (released.error().code != ErrorCode::kTimeout) return released.error();
  }
}

Result<void> BreakpointState::Borrow(const HeldRank& rank) {
  if (loan != nullptr) return {};  // the program goes from breakpoint to breakpoint
  auto asked = TerminalLoan::Ask(rank);
  if (asked) {
    loan = *std::move(asked);
    return {};
  }
  static_cast<void>(LetOthersGoOn());
  return std::move(asked).error();
}

Result<void> BreakpointState::GoOn() {
  stop.reset();
  return store->Set(std::exchange(stop_key, {}), "");
}

Result<void> BreakpointState::LetOthersGoOn() {
  if (awaited_key.empty()) return {};
  if (loan != nullptr) loan->GoOn();
  return store->Set(std::exchange(awaited_key, {}), "");
}

Result<void> BreakpointState::ReturnTerminal() {
  auto ok = LetOthersGoOn();
  loan.reset();
  return ok;
}

}  // namespace rankrun::comm
