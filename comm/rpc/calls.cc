#include "comm/rpc/calls.h"

#include <iterator>
#include <utility>
#include <vector>

#include "base/format.h"

namespace rankrun::comm::rpc {

uint64_t Calls::Begin(int callee, TimePoint deadline, End end) {
  TimePoint now = MonotonicClock().Now();
  MutexLock lock(mutex_);
  uint64_t id = ++last_id_;
  auto place = deadlines_.emplace(deadline, id);
  calls_.emplace(id, Call{callee, now, std::move(end), place});
  return id;
}

// Takes a call out of the table; RunEnd must follow.
Calls::Call Calls::Take(Table::iterator call) {
  Call taken = std::move(call->second);
  deadlines_.erase(taken.deadline);
  calls_.erase(call);
  ending_ += 1;
  return taken;
}

void Calls::RunEnd(Call& call, Outcome outcome) {
  call.end(std::move(outcome));
  call.end = nullptr;
  MutexLock lock(mutex_);
  ending_ -= 1;
}

void Calls::Finish(uint64_t id, Outcome outcome) {
  MutexLock lock(mutex_);
  auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call call = Take(found);
  lock.Unlock();
  RunEnd(call, std::move(outcome));
}

void Calls::FinishThose(const std::function<bool(const Call&)>& wanted, const Outcome& outcome) {
  std::vector<Call> over;
  {
    MutexLock lock(mutex_);
    for (auto call = calls_.begin(); call != calls_.end();) {
      auto next = std::next(call);
      if (wanted(call->second)) over.push_back(Take(call));
      call = next;
    }
  }
  for (Call& call : over) RunEnd(call, outcome);
}

void Calls::FinishAllTo(int callee, const Outcome& outcome) {
  FinishThose([callee](const Call& call) { return call.callee == callee; }, outcome);
}

void Calls::FinishAll(const Outcome& outcome) {
  FinishThose([](const Call&) { return true; }, outcome);
}

TimePoint Calls::FinishLate(TimePoint now) {
  std::vector<Call> late;
  TimePoint next = TimePoint::max();
  {
    MutexLock lock(mutex_);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      late.push_back(Take(calls_.find(deadlines_.begin()->second)));
    }
    if (!deadlines_.empty()) next = deadlines_.begin()->first;
  }
  for (Call& call : late) {
    RunEnd(call, {.kind = Outcome::Kind::kTimeout,
                  .text = "no reply after " + FormatSeconds(now - call.began)});
  }
  return next;
}

size_t Calls::open() const {
  MutexLock lock(mutex_);
  return calls_.size() + ending_;
}

uint64_t Calls::begun() const {
  MutexLock lock(mutex_);
  return last_id_;
}

}  // namespace rankrun::comm::rpc
