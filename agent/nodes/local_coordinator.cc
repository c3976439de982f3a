#include "agent/nodes/local_coordinator.h"

#include <algorithm>
#include <utility>

namespace rankrun::agent {
namespace {

constexpr PeerId kPeer = 1;
// Member and coordinator cannot lose each other.
constexpr std::chrono::hours kNever{24 * 365 * 10};

TimePoint Now() { return std::chrono::steady_clock::now(); }

CoordinatorPolicy PolicyOf(const JobSpec& spec, uint64_t node) {
  return {.restart = {.max_restarts = spec.max_restarts, .first_pause = spec.restart_pause},
          .join_timeout = kNever,
          .node_timeout = kNever,
          .finish_timeout = kNever,
          .answer_timeout = kNever,
          .own_node = node};
}

// Returns the state before the first attempt of this incarnation. The previous attempt
// failed together with its agent.
std::optional<CoordinatorRecord> EarlierOf(const JobRecord& record) {
  if (record.incarnation == 0 || !record.restarts) return std::nullopt;
  const RestartsUsed& restarts = *record.restarts;
  const int attempts = std::max(record.attempt + 1, restarts.used);
  return CoordinatorRecord{.round = attempts,
                           .attempts = attempts,
                           .history = {.restarts = restarts.used,
                                       .consecutive_failures = restarts.consecutive_failures}};
}

}  // namespace

LocalCoordinator::LocalCoordinator(Loop& loop, const JobSpec& spec, Incarnation& incarnation,
                                   Callbacks callbacks)
    : spec_(spec),
      incarnation_(incarnation),
      callbacks_(std::move(callbacks)),
      coordinator_(PolicyOf(spec, incarnation.record().node_id), EarlierOf(incarnation.record()),
                   Now()),
      member_({.join_timeout = kNever, .node_timeout = kNever}, SelfHello(), Now()),
      tick_(loop, [this] { Carry(Tick{}); }) {}

Hello LocalCoordinator::SelfHello() const {
  return {.node = incarnation_.record().node_id,
          .incarnation = incarnation_.record().incarnation,
          .name = {},
          .slots = spec_.workers,
          .addresses = {spec_.master_addr}};
}

void LocalCoordinator::Begin() {
  Carry(LinkUp{});
  Carry(MessageFromPeer{kPeer, member_.hello()});
}

// The guardian must know the budget as soon as it may start another agent.
void LocalCoordinator::NoteState(const GroupState& state) {
  JobRecord record = incarnation_.record();
  if (!record.restarts) record.restarts = RestartsUsed{.most = spec_.max_restarts};
  record.may_restart = CanResumeAfterAgentDeath(state);
  incarnation_.Write(std::move(record));
}

// Carries out the event and all that follow from it, in their order.
void LocalCoordinator::Carry(Happened event) {
  happened_.push_back(std::move(event));
  if (std::exchange(is_carrying_, true)) return;
  while (!happened_.empty()) {
    const Happened next = std::move(happened_.front());
    happened_.pop_front();
    StepOne(next);
  }
  is_carrying_ = false;
  tick_.Start(coordinator_.deadline() - Now());
}

void LocalCoordinator::StepOne(const Happened& event) {
  if (const auto* own = std::get_if<MemberEvent>(&event)) {
    for (const MemberAction& action : member_.Step(*own, Now())) {
      std::visit([this](const auto& a) { Act(a); }, action);
    }
  }
  if (const auto* its = std::get_if<CoordinatorEvent>(&event)) {
    for (const CoordinatorAction& action : coordinator_.Step(*its, Now())) {
      std::visit([this](const auto& a) { Act(a); }, action);
    }
  }
}

void LocalCoordinator::Act(const Send& action) { Carry(MessageFromPeer{kPeer, action.message}); }

void LocalCoordinator::Act(const SendMessage& action) {
  Carry(MessageFromCoordinator{action.message});
}

void LocalCoordinator::Act(const MakeReady& action) {
  round_ = action.round;
  Carry(Ready{round_.round, callbacks_.open_store()});
}

void LocalCoordinator::Act(const StartWorkers& action) {
  callbacks_.start(PlaceAlone(spec_, round_.attempt, action.start_round.store_port));
}

void LocalCoordinator::Act(const EndNode& action) { callbacks_.on_end(action.exit_code); }

// A restart that is pending is not counted, because the guardian counts the restart that
// an agent's death causes.
void LocalCoordinator::Act(const PersistRecord& action) {
  JobRecord record = incarnation_.record();
  RestartsUsed used = record.restarts.value_or(RestartsUsed{.most = spec_.max_restarts});
  const RestartHistory& history = action.record.history;
  if (action.record.is_granted) used.used = std::max(used.used, history.restarts);
  used.consecutive_failures = history.consecutive_failures;
  record.restarts = used;
  incarnation_.Write(std::move(record));
}

void LocalCoordinator::Act(const Announcement& action) {
  const auto* restart = std::get_if<events::RestartDecided>(&action.decision);
  if (restart != nullptr) {
    callbacks_.on_decided(coordinator_.outcome(), restart->pause, restart->number);
  }
  const auto* verdict = std::get_if<events::VerdictGiven>(&action.decision);
  if (verdict != nullptr && verdict->exit_code != 0) {
    callbacks_.on_decided(coordinator_.outcome(), Duration::zero(), 0);
  }
}

bool CanResumeAfterAgentDeath(const GroupState& state) {
  bool has_ended = state.phase == Phase::kSweeping || state.phase == Phase::kIdle;
  bool is_done = has_ended && state.has_succeeded();
  return !state.over() && !is_done && state.stop_signal == 0 && !state.timed_out && !state.stuck;
}

}  // namespace rankrun::agent
