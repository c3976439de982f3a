#include "comm/rpc/agent.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/process/start_thread.h"
#include "comm/core/time_left.h"
#include "comm/rpc/peer.h"

namespace rankrun::comm::rpc {
namespace {

using std::chrono::milliseconds;
using Kind = Outcome::Kind;

// The agent of the node reports a death a little later than the connection ends.
constexpr milliseconds kDeathMessageWait{50};
constexpr size_t kMaxFailureText = size_t{64} << 10;

constexpr char kEndedHere[] = "RPC of this worker has ended";

// First character of the head of a kFailure: why there is no reply.
constexpr char kRaised = 'r';
constexpr char kUnknown = 'u';

TimePoint Now() { return MonotonicClock().Now(); }

TimePoint DeadlineOf(milliseconds limit) {
  return limit > milliseconds(0) ? Now() + Bounded(limit) : TimePoint::max();
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::Make(
    AgentOptions options, std::vector<std::unique_ptr<stream::Connection>> connections,
    const Methods& methods) {
  auto threads = Threads::Make(options.methods);
  if (!threads) return std::move(threads).error();
  std::unique_ptr<Agent> agent(new Agent(std::move(options), methods, *std::move(threads)));
  for (size_t id = 0; id < connections.size(); ++id) {
    auto& peer = agent->peers_.emplace_back();
    if (connections[id] == nullptr) continue;
    peer = std::make_shared<Peer>(*agent, static_cast<int>(id), std::move(connections[id]));
  }
  auto housekeeper = StartThread([made = agent.get()] { made->Housekeep(); });
  if (!housekeeper) return std::move(housekeeper).error();
  agent->housekeeper_ = *std::move(housekeeper);
  // After the table is complete, because a method may call any worker at once.
  for (const auto& peer : agent->peers_) {
    if (peer == nullptr) continue;
    if (auto ok = agent->threads_->Add(peer); !ok) return std::move(ok).error();
  }
  return agent;
}

Agent::Agent(AgentOptions options, const Methods& methods, std::unique_ptr<Threads> threads)
    : options_(std::move(options)), methods_(methods), threads_(std::move(threads)) {}

Agent::~Agent() {
  Close();
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    changed_.NotifyAll();
  }
  if (housekeeper_.joinable()) housekeeper_.join();
}

void Agent::Close() {
  if (is_closed_.exchange(true)) return;
  calls_.FinishAll({.kind = Kind::kEnded, .text = kEndedHere});
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    peer->Send(FrameKind::kGoodbye, 0, {});
    peer->Close(kEndedHere);
  }
  threads_->NotifyWaiters();
}

void Agent::Call(int callee, std::string_view method, Message arguments, milliseconds limit,
                 Calls::End end) {
  running_.fetch_add(1);  // until `end` has returned
  Begin(callee, method, std::move(arguments), limit,
        [this, end = std::move(end)](Outcome outcome) mutable {
          auto last = std::make_shared<Outcome>(std::move(outcome));
          threads_->Run([this, end = std::move(end), last] {
            end(std::move(*last));
            running_.fetch_sub(1);
          });
        });
}

Outcome Agent::CallAndWait(int callee, std::string_view method, Message arguments,
                           milliseconds limit) {
  struct Waited {
    std::atomic<bool> is_over = false;
    Outcome outcome;
  };
  Waited waited;
  Begin(callee, method, std::move(arguments), limit, [&waited](Outcome outcome) {
    waited.outcome = std::move(outcome);
    waited.is_over.store(true, std::memory_order_release);  // the last use
  });
  auto is_over = [&] { return waited.is_over.load(std::memory_order_acquire); };
  // Calls end at their deadline, so that this wait needs none.
  while (!threads_->Await(is_over, peers_[static_cast<size_t>(callee)].get(), TimePoint::max())) {
  }
  return std::move(waited.outcome);
}

void Agent::Begin(int callee, std::string_view method, Message arguments, milliseconds limit,
                  Calls::End end) {
  TimePoint deadline = DeadlineOf(limit);
  uint64_t id = calls_.Begin(callee, deadline, std::move(end));
  WakeForDeadline(deadline);
  Message request{RequestHead(std::move(arguments.head), method), std::move(arguments.blobs)};
  if (is_closed_.load()) {
    return calls_.Finish(id, {.kind = Kind::kEnded, .text = kEndedHere});
  }
  const auto& peer = peers_[static_cast<size_t>(callee)];
  if (peer == nullptr) {
    threads_->Run([this, id, request = std::move(request)]() mutable {
      calls_.Finish(id, RunMethod(self(), std::move(request)));
      threads_->NotifyWaiters();
    });
  } else if (!peer->Send(FrameKind::kRequest, id, std::move(request))) {
    // Otherwise the housekeeper ends the call once it knows why.
    if (auto loss = peer->loss()) calls_.Finish(id, {.kind = Kind::kLost, .text = *loss});
  }
}

Outcome Agent::RunMethod(int caller, Message request) {
  struct Count {
    explicit Count(std::atomic<size_t>& of) : count(of) { count.fetch_add(1); }
    ~Count() { count.fetch_sub(1); }
    std::atomic<size_t>& count;
  } counted(running_), method_counted(methods_running_);
  std::string name;
  if (!TakeMethod(request.head, name)) {
    return {.kind = Kind::kUnknown, .text = "the request names no method"};
  }
  auto method = methods_.Find(name);
  if (!method) return {.kind = Kind::kUnknown, .text = std::move(method).error().message};
  try {
    return {.reply = (**method)({caller, roster().NameOf(caller)}, std::move(request))};
  } catch (const std::exception& error) {
    return {.kind = Kind::kRaised, .text = error.what()};
  } catch (...) {
    return {.kind = Kind::kRaised, .text = "an exception that is no std::exception"};
  }
}

void Agent::Serve(Peer& caller, uint64_t id, Message request) {
  running_.fetch_add(1);  // until the reply is queued
  Outcome outcome = RunMethod(caller.id(), std::move(request));
  if (outcome.kind == Kind::kReply) {
    caller.Send(FrameKind::kReply, id, std::move(outcome.reply));
  } else {
    const char why = outcome.kind == Kind::kUnknown ? kUnknown : kRaised;
    outcome.text.resize(std::min(outcome.text.size(), kMaxFailureText));
    caller.Send(FrameKind::kFailure, id, {.head = why + outcome.text});
  }
  running_.fetch_sub(1);
}

void Agent::OnReply(const FrameHeader& header, std::string_view head, std::vector<Blob> blobs) {
  Outcome outcome;
  if (header.kind == FrameKind::kReply) {
    outcome.reply = {std::string(head), std::move(blobs)};
  } else {
    bool is_unknown = !head.empty() && head.front() == kUnknown;
    outcome.kind = is_unknown ? Kind::kUnknown : Kind::kRaised;
    outcome.text = head.empty() ? "no reason is given" : std::string(head.substr(1));
  }
  calls_.Finish(header.id, std::move(outcome));
  threads_->NotifyWaiters();
}

void Agent::OnLost(std::shared_ptr<Peer> peer) {
  MutexLock lock(mutex_);
  lost_.push_back(std::move(peer));
  changed_.NotifyAll();
}

void Agent::SetLossHandler(std::function<void(int worker)> lost) {
  MutexLock lock(mutex_);
  loss_handler_ = std::move(lost);
}

void Agent::WakeForDeadline(TimePoint deadline) {
  if (deadline >= watched_deadline_.load()) return;
  MutexLock lock(mutex_);
  if (deadline >= next_deadline_) return;
  next_deadline_ = deadline;
  watched_deadline_.store(deadline);
  changed_.NotifyAll();
}

void Agent::Housekeep() {
  MutexLock lock(mutex_);
  while (!is_ending_) {
    if (!lost_.empty()) {
      auto lost = std::exchange(lost_, {});
      lock.Unlock();
      EndCallsTo(lost);
      lock.Lock();
    } else if (next_deadline_ <= Now()) {
      lock.Unlock();
      EndLateCalls();
      lock.Lock();
    } else if (next_deadline_ == TimePoint::max()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitUntil(mutex_, next_deadline_);
    }
  }
}

void Agent::EndLateCalls() {
  {
    // Before the look, so that a call that begins meanwhile wakes the housekeeper again.
    MutexLock lock(mutex_);
    next_deadline_ = TimePoint::max();
    watched_deadline_.store(next_deadline_);
  }
  TimePoint next = calls_.FinishLate(Now());
  threads_->NotifyWaiters();
  WakeForDeadline(next);
}

void Agent::EndCallsTo(const std::vector<std::shared_ptr<Peer>>& lost) {
  const DeathWatch& deaths = options_.deaths;
  bool may_be_death =
      deaths.has_agent() && !is_closed_.load() &&
      std::any_of(lost.begin(), lost.end(), [](const auto& peer) { return !peer->has_ended(); });
  if (may_be_death) deaths.SleepUntil(Now() + kDeathMessageWait);
  std::function<void(int)> handler;
  {
    MutexLock lock(mutex_);
    handler = loss_handler_;
  }
  for (const auto& peer : lost) {
    std::string why = deaths.has_death() ? deaths.Message() : peer->lost_by();
    if (peer->has_ended()) why = "it has shut down RPC";
    Outcome outcome{.kind = Kind::kLost,
                    .text = "lost worker " + roster().NameOf(peer->id()) + ": " + why};
    peer->set_loss(outcome.text);
    calls_.FinishAllTo(peer->id(), outcome);
    if (handler) handler(peer->id());
  }
  threads_->NotifyWaiters();
}

}  // namespace rankrun::comm::rpc
