#include "comm/cpp/rpc/worker_agent.h"

#include <algorithm>
#include <utility>

#include "base/interruptible_call.h"
#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/cpp/rpc/methods.h"
#include "comm/cpp/rpc/running.h"

namespace rankrun::rpc {
namespace {

namespace core = comm::rpc;
using std::chrono::milliseconds;
using Kind = core::Outcome::Kind;

// Limit of steps that the program has given none.
constexpr milliseconds kUnlimited = std::chrono::hours(24 * 365);

WorkerInfo InfoOf(const core::Worker& worker) { return {worker.name, worker.id}; }

}  // namespace

std::exception_ptr ErrorOf(const std::string& callee, const std::string& method,
                           const core::Outcome& outcome) {
  if (outcome.kind == Kind::kReply) return nullptr;
  const std::string text = "call of " + method + " on worker " + callee + ": " + outcome.text;
  switch (outcome.kind) {
    case Kind::kReply:
      return nullptr;
    case Kind::kRaised:
      return std::make_exception_ptr(RemoteError(text));
    case Kind::kUnknown:
      return std::make_exception_ptr(UnknownMethodError(text));
    case Kind::kTimeout:
      return std::make_exception_ptr(DistTimeoutError(text));
    case Kind::kLost:
    case Kind::kEnded:
      return std::make_exception_ptr(DistNetworkError(text));
  }
  __builtin_unreachable();
}

void ThrowIfInterrupted() {
  if (InterruptibleCall::IsInterrupted()) {
    comm::Throw(InterruptibleCall::Failure());
  }
}

void ThrowUnfinished(int64_t calls_and_methods, milliseconds limit) {
  comm::Throw({ErrorCode::kTimeout, std::to_string(calls_and_methods) +
                                        " calls and methods have not ended after " +
                                        std::to_string(limit.count()) + " ms"});
}

milliseconds FiniteLimit(milliseconds limit) {
  return limit > milliseconds(0) ? comm::Bounded(limit) : kUnlimited;
}

WorkerInfo WorkerAgent::GetWorkerInfo() const { return InfoOf(agent_->self()); }

std::vector<WorkerInfo> WorkerAgent::GetWorkerInfos() const {
  std::vector<WorkerInfo> all;
  for (const core::Worker& each : agent_->roster().All()) all.push_back(InfoOf(each));
  return all;
}

WorkerInfo WorkerAgent::Find(const To& to) const {
  const core::Roster& roster = agent_->roster();
  if (to.id() == -1) return InfoOf(comm::Unwrap(roster.Find(*to.name())));
  WorkerInfo found = InfoOf(comm::Unwrap(roster.Find(to.id())));
  if (!to.name() || *to.name() == found.name) return found;
  ThrowInvalid("worker " + *to.name() + " has left: its id " + std::to_string(to.id()) +
               " is that of " + found.name);
}

Payload WorkerAgent::CallAndWait(const WorkerInfo& callee, const std::string& method,
                                 Payload arguments, milliseconds limit) {
  if (InterruptibleCall::IsUnderWay()) {
    return Call(callee, method, std::move(arguments), limit).Wait();
  }
  auto outcome = agent_->CallAndWait(callee.id, method, MessageOf(std::move(arguments)), limit);
  if (auto why = ErrorOf(callee.name, method, outcome)) std::rethrow_exception(why);
  return PayloadOf(std::move(outcome.reply));
}

Future<Payload> WorkerAgent::Call(const WorkerInfo& callee, const std::string& method,
                                  Payload arguments, milliseconds limit) {
  Promise<Payload> promise;
  agent_->Call(callee.id, method, MessageOf(std::move(arguments)), limit,
               [promise, name = callee.name, method](core::Outcome outcome) {
                 if (auto why = ErrorOf(name, method, outcome)) {
                   promise.SetException(why);
                 } else {
                   promise.SetValue(PayloadOf(std::move(outcome.reply)));
                 }
               });
  return promise.future();
}

bool WorkerAgent::MayArriveOn(const Device& device) const {
  const std::vector<Device> in_use = devices_->in_use();
  return std::find(in_use.begin(), in_use.end(), device) != in_use.end();
}

bool WorkerAgent::IsLost(int worker) const {
  if (agent_->roster().Find(worker)) return agent_->is_lost(worker);
  return group_->HasLeft(worker);
}

void WorkerAgent::Shutdown() {
  RunningState::OfThisProcess().GiveUpStart();  // methods that run here may wait for it
  agent_->Close();
  group_->Leave();
}

void WorkerAgent::SetLossHandler(std::function<void(int worker)> lost) {
  agent_->SetLossHandler([this, lost = std::move(lost)](int worker, bool has_ended) {
    lost(worker);
    if (!agent_->is_closed()) group_->OnLost(worker, has_ended);
  });
}

std::map<std::string, std::string> WorkerAgent::GetMetrics() const {
  const core::Threads& threads = agent_->threads();
  return {{"agent.thread_pool_size", std::to_string(threads.size())},
          {"agent.num_idle_threads", std::to_string(threads.resting())},
          {"agent.client_active_calls", std::to_string(agent_->open_calls())},
          {"agent.server_active_calls", std::to_string(agent_->running_methods())}};
}

}  // namespace rankrun::rpc
