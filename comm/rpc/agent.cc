#include "comm/rpc/agent.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/process/start_thread.h"
#include "comm/core/operation_events.h"
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
constexpr char kHasLeft[] = "the worker has left";

// First character of the head of a kFailure: why there is no reply.
constexpr char kRaised = 'r';
constexpr char kUnknown = 'u';
constexpr char kLate = 'l';

char LetterOf(Kind kind) {
  if (kind == Kind::kUnknown) return kUnknown;
  return kind == Kind::kTimeout ? kLate : kRaised;
}

Kind KindOf(char letter) {
  if (letter == kUnknown) return Kind::kUnknown;
  return letter == kLate ? Kind::kTimeout : Kind::kRaised;
}

TimePoint Now() { return MonotonicClock().Now(); }

TimePoint DeadlineOf(milliseconds limit) {
  return limit > milliseconds(0) ? Now() + Bounded(limit) : TimePoint::max();
}

Message RequestOf(std::string_view method, Message arguments, milliseconds limit) {
  return {RequestHead(std::move(arguments.head), method, limit), std::move(arguments.blobs)};
}

// Whether the caller has given up before the method begins.
bool IsLate(const Request& request, TimePoint arrived) {
  return request.limit_ms > 0 && !RunsLate(request.method) &&
         Now() >= arrived + milliseconds(request.limit_ms);
}

OperationEvent BeginEvent(uint8_t kind, int peer, std::string_view method, const Message& message) {
  uint64_t bytes = message.head.size();
  for (const Blob& each : message.blobs) bytes += each.bytes.size();
  return BeginRpc({.kind = kind, .peer = peer, .method = method, .bytes = bytes});
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::Make(AgentOptions options, const Methods& methods) {
  OpenTrace(std::nullopt);
  auto threads = Threads::Make(options.methods);
  if (!threads) return std::move(threads).error();
  std::unique_ptr<Agent> agent(new Agent(std::move(options), methods, *std::move(threads)));
  if (auto ok = agent->roster_.Add(agent->self()); !ok) return std::move(ok).error();
  auto housekeeper = StartThread([made = agent.get()] { made->Housekeep(); });
  if (!housekeeper) return std::move(housekeeper).error();
  agent->housekeeper_ = *std::move(housekeeper);
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

Result<void> Agent::AddPeers(std::vector<NewPeer> peers) {
  std::vector<std::shared_ptr<Peer>> added;
  for (NewPeer& each : peers) {
    if (auto ok = roster_.Add(each.worker); !ok) return ok;
    added.push_back(
        std::make_shared<Peer>(*this, std::move(each.worker), std::move(each.connection)));
    MutexLock lock(peers_mutex_);
    peers_.emplace(added.back()->worker().id, added.back());
  }
  // After the table is complete, because a method may call any worker at once.
  for (const auto& peer : added) {
    if (auto ok = threads_->Add(peer); !ok) {
      for (const auto& each : added) RemovePeer(each->worker().id);
      return ok;
    }
    peer->WatchWritable();  // it may have been called already
  }
  if (is_closed_.load()) SayGoodbye(added);
  return {};
}

void Agent::SayGoodbye(const std::vector<std::shared_ptr<Peer>>& peers) {
  for (const auto& peer : peers) {
    peer->Send(FrameKind::kGoodbye, 0, {});
    peer->Close(kEndedHere);
  }
}

void Agent::RemovePeer(int id) {
  roster_.Remove(id);
  MutexLock lock(peers_mutex_);
  auto found = peers_.find(id);
  if (found == peers_.end()) return;
  std::shared_ptr<Peer> peer = std::move(found->second);
  peers_.erase(found);
  lock.Unlock();
  peer->Close(kHasLeft);
  EndCallsTo(*peer);  // before another worker can have the id
  threads_->NotifyWaiters();
}

bool Agent::is_lost(int id) const {
  auto peer = PeerOf(id);
  return peer != nullptr && peer->is_lost();
}

bool Agent::has_queued() const {
  auto peers = AllPeers();
  return std::any_of(peers.begin(), peers.end(),
                     [](const auto& peer) { return peer->has_queued(); });
}

std::shared_ptr<Peer> Agent::PeerOf(int id) const {
  MutexLock lock(peers_mutex_);
  auto found = peers_.find(id);
  return found != peers_.end() ? found->second : nullptr;
}

std::vector<std::shared_ptr<Peer>> Agent::AllPeers() const {
  std::vector<std::shared_ptr<Peer>> all;
  MutexLock lock(peers_mutex_);
  for (const auto& [id, peer] : peers_) all.push_back(peer);
  return all;
}

Outcome Agent::Ended() {
  MutexLock lock(mutex_);
  return {.kind = Kind::kEnded, .text = why_closed_};
}

void Agent::Close(const std::string& why) {
  {
    MutexLock lock(mutex_);
    if (is_closed_.load()) return;
    why_closed_ = why;
    is_closed_.store(true);
  }
  calls_.FinishAll(Ended());
  SayGoodbye(AllPeers());
  threads_->NotifyWaiters();
}

void Agent::Call(int callee, std::string_view method, Message arguments, milliseconds limit,
                 Calls::End end) {
  running_.fetch_add(1);  // until `end` has returned
  OperationEvent event = BeginEvent(trace_kind::kRpcCall, callee, method, arguments);
  Begin(callee, FrameKind::kRequest, RequestOf(method, std::move(arguments), limit), limit,
        [this, event, end = std::move(end)](Outcome outcome) mutable {
          auto last = std::make_shared<Outcome>(std::move(outcome));
          threads_->Run([this, event, end = std::move(end), last] {
            event.End(last->kind == Kind::kReply);
            end(std::move(*last));
            running_.fetch_sub(1);
          });
        });
}

Outcome Agent::CallAndWait(int callee, std::string_view method, Message arguments,
                           milliseconds limit) {
  OperationEvent event = BeginEvent(trace_kind::kRpcCall, callee, method, arguments);
  Outcome outcome = SendAndWait(callee, FrameKind::kRequest,
                                RequestOf(method, std::move(arguments), limit), limit);
  event.End(outcome.kind == Kind::kReply);
  return outcome;
}

Outcome Agent::Ping(int callee, milliseconds limit) {
  return SendAndWait(callee, FrameKind::kPing, {}, limit);
}

Outcome Agent::SendAndWait(int callee, FrameKind kind, Message message, milliseconds limit) {
  struct Waited {
    std::atomic<bool> is_over = false;
    Outcome outcome;
  };
  Waited waited;
  Begin(callee, kind, std::move(message), limit, [&waited](Outcome outcome) {
    waited.outcome = std::move(outcome);
    waited.is_over.store(true, std::memory_order_release);  // the last use
  });
  auto is_over = [&] { return waited.is_over.load(std::memory_order_acquire); };
  // Calls end at their deadline, so that this wait needs none.
  auto peer = PeerOf(callee);
  while (!threads_->Await(is_over, peer.get(), TimePoint::max())) {
  }
  return std::move(waited.outcome);
}

void Agent::Begin(int callee, FrameKind kind, Message message, milliseconds limit, Calls::End end) {
  TimePoint deadline = DeadlineOf(limit);
  uint64_t id = calls_.Begin(callee, deadline, std::move(end));
  WakeForDeadline(deadline);
  if (is_closed_.load()) {
    return calls_.Finish(id, Ended());
  }
  if (callee == self().id) {
    threads_->Run([this, id, request = std::move(message), now = Now()]() mutable {
      calls_.Finish(id, RunMethod(self(), std::move(request), now));
      threads_->NotifyWaiters();
    });
    return;
  }
  auto peer = PeerOf(callee);
  if (peer == nullptr) {
    return calls_.Finish(id, {.kind = Kind::kLost, .text = kHasLeft});
  }
  if (!peer->Send(kind, id, std::move(message))) {
    // Otherwise the housekeeper ends the call once it knows why.
    if (auto loss = peer->loss()) calls_.Finish(id, {.kind = Kind::kLost, .text = *loss});
  }
}

Outcome Agent::RunMethod(const Worker& caller, Message message, TimePoint arrived) {
  struct Count {
    explicit Count(std::atomic<size_t>& of) : count(of) { count.fetch_add(1); }
    ~Count() { count.fetch_sub(1); }
    std::atomic<size_t>& count;
  } counted(running_), method_counted(methods_running_);
  Request request;
  if (!TakeRequest(message.head, request)) {
    return {.kind = Kind::kUnknown, .text = "the request names no method"};
  }
  if (IsLate(request, arrived)) {
    return {.kind = Kind::kTimeout, .text = "it has waited for longer than its time-out"};
  }
  auto method = methods_.Find(request.method);
  if (!method) return {.kind = Kind::kUnknown, .text = std::move(method).error().message};
  OperationEvent event = BeginEvent(trace_kind::kRpcMethod, caller.id, request.method, message);
  Outcome outcome = Run(**method, {caller.id, caller.name}, std::move(message));
  event.End(outcome.kind == Kind::kReply);
  return outcome;
}

void Agent::Serve(Peer& caller, uint64_t id, Message request, TimePoint arrived) {
  running_.fetch_add(1);  // until the reply is queued
  Outcome outcome = RunMethod(caller.worker(), std::move(request), arrived);
  if (outcome.kind == Kind::kReply) {
    caller.Send(FrameKind::kReply, id, std::move(outcome.reply));
  } else {
    const char why = LetterOf(outcome.kind);
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
    outcome.kind = head.empty() ? Kind::kRaised : KindOf(head.front());
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

void Agent::SetLossHandler(LossHandler lost) {
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
      EndCallsToLost(lost);
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

void Agent::EndCallsToLost(const std::vector<std::shared_ptr<Peer>>& lost) {
  const DeathWatch& deaths = options_.deaths;
  bool may_be_death =
      deaths.has_agent() && !is_closed_.load() &&
      std::any_of(lost.begin(), lost.end(), [](const auto& peer) { return !peer->has_ended(); });
  if (may_be_death) deaths.SleepUntil(Now() + kDeathMessageWait);
  for (const auto& peer : lost) EndCallsTo(*peer);
  threads_->NotifyWaiters();
}

void Agent::EndCallsTo(Peer& lost) {
  lost.EndOnce([&] { FinishCallsTo(lost); });
}

void Agent::FinishCallsTo(Peer& lost) {
  const DeathWatch& deaths = options_.deaths;
  std::string why = deaths.has_death() ? deaths.Message() : lost.lost_by();
  if (lost.has_ended()) why = "it has shut down RPC";
  const Worker& worker = lost.worker();
  Outcome outcome{.kind = Kind::kLost, .text = "lost worker " + worker.name + ": " + why};
  if (is_closed_.load()) outcome = Ended();  // Close has closed the connection
  lost.set_loss(outcome.text);
  calls_.FinishAllTo(worker.id, outcome);
  LossHandler handler;
  {
    MutexLock lock(mutex_);
    handler = loss_handler_;
  }
  if (handler) handler(worker.id, lost.has_ended());
}

}  // namespace rankrun::comm::rpc
