#include "agent/nodes/node_prober.h"

#include <utility>

#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kDialTimeout{1};

LivenessAnswer AnswerOf(const DialResult& result) {
  const auto* failure = std::get_if<DialFailure>(&result);
  if (failure == nullptr) return LivenessAnswer::kConnected;
  bool is_refused = failure->kind == DialFailureKind::kRefused;
  return is_refused ? LivenessAnswer::kRefused : LivenessAnswer::kNone;
}

}  // namespace

NodeProber::NodeProber(Loop& loop, std::chrono::milliseconds node_timeout, Callbacks callbacks)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      watch_(node_timeout),
      timer_(loop, [this] { Continue(); }) {}

void NodeProber::OnHello(uint64_t node, const Endpoint& target) {
  watch_.OnHello(node, target, MonotonicClock().Now());
  Arm();
}

void NodeProber::OnMessage(uint64_t node) { watch_.OnMessage(node, MonotonicClock().Now()); }

void NodeProber::OnBroken(uint64_t node) {
  watch_.OnBroken(node, MonotonicClock().Now());
  Arm();
}

void NodeProber::Continue() {
  ended_.clear();
  for (const LivenessDial& dial : watch_.Due(MonotonicClock().Now())) {
    if (callbacks_.is_wanted(dial.node)) {
      dials_[dial.number] = std::make_unique<ControlDial>(
          loop_, dial.target, 0, kDialTimeout,
          [this, number = dial.number](DialResult result) { OnDialled(number, result); });
    } else {
      watch_.Forget(dial.node);
      watch_.OnAnswer(dial.number, LivenessAnswer::kNone, MonotonicClock().Now());
    }
  }
  Arm();
}

void NodeProber::Arm() {
  auto deadline = watch_.deadline();
  if (!ended_.empty()) return timer_.Start(Duration::zero());
  if (!deadline) return timer_.Stop();
  timer_.Start(*deadline - MonotonicClock().Now());
}

void NodeProber::OnDialled(uint64_t number, const DialResult& result) {
  ended_.push_back(std::move(dials_.extract(number).mapped()));
  auto gone = watch_.OnAnswer(number, AnswerOf(result), MonotonicClock().Now());
  Arm();
  if (gone && callbacks_.is_wanted(gone->node)) callbacks_.on_gone(*gone);
}

}  // namespace rankrun::agent
