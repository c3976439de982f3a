#include "tests/cluster/node.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <uv.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/net/listen_socket.h"
#include "base/net/socket_address.h"

namespace rankrun::cluster {
namespace {

bool IsReadable(int fd) {
  pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, 0) > 0;
}

}  // namespace

Node::Node(Stage& stage, int number, agent::JobSpec spec)
    : stage_(stage),
      number_(number),
      name_("n" + std::to_string(number)),
      spec_(std::move(spec)),
      liveness_(*OpenTcpSocket()) {
  record_.node_id = static_cast<uint64_t>(number) + 1;
  record_.job_began = test::VirtualNow();
  StartAgent();
}

void Node::StartAgent() {
  auto life = std::make_unique<Life>();
  auto pair = *agent::GuardianLink::CreatePair();
  auto memory = *agent::JobMemory::Create();
  RANKRUN_CHECK(bool(memory.Write(record_)), "no memory for a record");
  guardian_.emplace(std::move(pair.first));
  lease_end_ = test::VirtualNow() + spec_.nodes->node_timeout;
  life->incarnation = std::make_unique<agent::Incarnation>(
      std::move(pair.second), std::move(memory), Fd(fcntl(liveness_.get(), F_DUPFD_CLOEXEC, 3)));
  life->workers = std::make_unique<Workers>(
      stage_, number_, [raw = life.get()]() -> agent::Membership& { return *raw->membership; });
  life->membership = std::make_unique<agent::Membership>(life->loop, spec_, *life->incarnation,
                                                         CallbacksOf(*life));
  life_ = std::move(life);
  stage_.Trace(name_, "agent " + std::to_string(record_.incarnation) + " begins");
  if (auto opened = life_->membership->Open(); !opened) {
    return stage_.checker.Violate(name_ + ": " + opened.error().message);
  }
  life_->membership->Begin();
}

agent::MembershipCallbacks Node::CallbacksOf(Life& life) {
  return {.open_store = [&life] { return OpenStore(life); },
          .admit_only = [](const auto&) {},
          .start =
              [&life](const agent::NodePlace& place) {
                if (place.node_rank != 0) life.store.Reset();
                life.workers->Start(place);
              },
          .stop = [&life](const agent::StopWorkers& order) { life.workers->Stop(order); },
          .report_success = [&life] { life.workers->ReportSuccess(); },
          .say = [this](const std::string& text) { stage_.Trace(name_, "says " + text); },
          .on_node_lost = [this](const std::string& text) { stage_.Trace(name_, text); },
          .on_decision = {},
          .show_report =
              [this](const agent::AttemptRecord& record) {
                stage_.Trace(name_,
                             "shows the report on attempt " + std::to_string(record.attempt));
                stage_.checker.OnReport(number_, record);
              },
          .on_health_order = [](const auto&) {},
          .on_relay = {},
          .on_end = [this](int exit_code, const std::string& text) { OnEnd(exit_code, text); }};
}

Result<uint16_t> Node::OpenStore(Life& life) {
  auto socket = OpenTcpSocket();
  if (!socket) return std::move(socket).error();
  life.store = std::move(*socket);
  return ListenOnFreePort(life.store.get());
}

void Node::OnEnd(int exit_code, const std::string& text) {
  stage_.Trace(name_, "ends with " + std::to_string(exit_code) + ": " + text);
  stage_.checker.OnEnd(number_, exit_code, text);
  is_over_ = true;
  liveness_.Reset();
  EndLife();
}

// Its objects may be in one of their callbacks.
void Node::EndLife() {
  if (!life_) return;
  record_ = life_->incarnation->record();
  ended_ = std::move(life_);
}

bool Node::Run() {
  if (!life_ || !is_awake()) return std::exchange(ended_, nullptr) != nullptr;
  uv_loop_t* loop = life_->loop.raw();
  uv_run(loop, UV_RUN_NOWAIT);
  if (std::exchange(ended_, nullptr) != nullptr) return true;
  ActAsGuardian();
  if (!life_) return true;
  uv_update_time(loop);
  return IsReadable(uv_backend_fd(loop)) || uv_backend_timeout(loop) == 0;
}

std::optional<TimePoint> Node::next() const {
  if (!life_) return std::nullopt;
  if (!is_awake()) return stage_.frozen_until[number_];
  uv_loop_t* loop = life_->loop.raw();
  uv_update_time(loop);
  const int wait = uv_backend_timeout(loop);
  const TimePoint after_lease = lease_end_ + milliseconds(1);
  if (wait < 0) return after_lease;
  return std::min(after_lease, test::VirtualNow() + milliseconds(wait));
}

int Node::poll_fd() const { return life_ && is_awake() ? uv_backend_fd(life_->loop.raw()) : -1; }

// An agent that stood still has first its turn.
void Node::ActAsGuardian() {
  while (auto message = guardian_->Receive()) {
    const auto* beat = std::get_if<agent::Heartbeat>(&*message);
    if (beat != nullptr) lease_end_ = test::VirtualNow() + beat->lease;
  }
  if (test::VirtualNow() <= lease_end_) return;
  stage_.checker.Violate(name_ + ": its agent has let its lease end");
  KillAgent();
}

void Node::KillAgent() {
  if (!life_) return;
  stage_.Trace(name_, "its agent dies");
  const bool had_workers = life_->workers->are_running();
  EndLife();
  if (had_workers) stage_.on_peers_lost(number_);
  stage_.After(stage_.dice.Between(2, 40), [this, had_workers] {
    if (is_lost_) return;
    if (had_workers) stage_.checker.OnWorkersGone(number_);
    if (!record_.may_restart) {
      is_lost_ = is_over_ = true;
      return liveness_.Reset();
    }
    record_.incarnation += 1;
    record_.last_end = "killed by SIGKILL";
    StartAgent();
  });
}

void Node::LoseMachine() {
  if (is_over_ || is_lost_) return;
  stage_.Trace(name_, "is lost");
  const bool is_needed = life_ && (life_->workers->are_running() || life_->store);
  EndLife();
  liveness_.Reset();
  is_lost_ = is_over_ = true;
  stage_.checker.OnWorkersGone(number_);
  if (!is_needed) return;
  stage_.checker.OnLost(test::VirtualNow());
  stage_.on_peers_lost(number_);
}

void Node::Freeze(Duration length) {
  if (!life_) return;
  stage_.Trace(name_, "stands still");
  has_stood_still_ = true;
  stage_.checker.OnFrozen(number_);
  TimePoint& until = stage_.frozen_until[number_];
  until = std::max(until, test::VirtualNow() + length);
}

void Node::Drain() {
  if (!life_) return;
  stage_.Trace(name_, "is drained");
  life_->workers->BeginStop(false);
  life_->membership->RequestLeave("it got SIGTERM");
}

void Node::Close() {
  if (!life_) return;
  stage_.Trace(name_, "is closed");
  life_->workers->BeginStop(false);
  life_->membership->RequestClose({.text = "Ctrl-C at " + name_,
                                   .exit_code = 130,
                                   .is_primary = false,
                                   .is_fatal = true,
                                   .consumes_restart = false});
}

}  // namespace rankrun::cluster
