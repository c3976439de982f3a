#include "tests/sim/words.h"

#include "agent/report/event.h"

namespace rankrun::sim {
namespace {

std::string Number(int64_t n) { return std::to_string(n); }

std::string Say(const agent::Hello& m) {
  static constexpr const char* kWork[] = {"none",     "prepared", "running",
                                          "stopping", "done",     "finished"};
  return "hello: agent " + Number(m.incarnation) + ", round " + Number(m.round) + ", work " +
         kWork[static_cast<int>(m.work)];
}
std::string Say(const agent::Prepared& m) { return "prepared for round " + Number(m.round); }
std::string Say(const agent::Failed& m) {
  return "failed in round " + Number(m.round) + ": " + m.cause.text;
}
std::string Say(const agent::Done& m) { return "done with round " + Number(m.round); }
std::string Say(const agent::Stopped& m) { return "stopped in round " + Number(m.round); }
std::string Say(const agent::FinishSeen& m) { return "finish seen of round " + Number(m.round); }
std::string Say(const agent::Leave& m) { return "leave: " + m.why; }
std::string Say(const agent::Close& m) { return "close: " + m.cause.text; }
std::string Say(const agent::Beat& m) { return "beat " + Number(static_cast<int64_t>(m.number)); }
std::string Say(const agent::Report& m) { return "report on attempt " + Number(m.attempt); }
std::string Say(const agent::JobReport& m) { return "report on attempt " + Number(m.attempt); }
std::string Say(const agent::Stuck& m) { return "stuck: " + m.process.what; }
std::string Say(const agent::NodeHealth& m) { return "samples in round " + Number(m.round); }
std::string Say(const agent::NodeStacks& m) { return "stacks in round " + Number(m.round); }
std::string Say(const agent::HealthWanted& m) { return "want samples of " + Number(m.round); }
std::string Say(const agent::HangNotice& m) { return "hang notice: " + m.text; }
std::string Say(const agent::StacksWanted& m) { return "want stacks of " + Number(m.round); }
std::string Say(const agent::HangFound& m) { return "hang: " + m.text; }
std::string Say(const agent::Relay&) { return "relay"; }
std::string Say(const agent::WhoseClients&) { return "whose clients"; }
std::string Say(const agent::ClientVerdicts&) { return "verdicts on clients"; }
std::string Say(const agent::NodeLost& m) { return "lost: " + m.text; }
std::string Say(const agent::Waiting& m) { return "waiting: " + m.text; }
std::string Say(const agent::Refusal& m) { return "refusal: " + m.text; }
std::string Say(const agent::Prepare& m) {
  return "prepare round " + Number(m.round) + ", attempt " + Number(m.attempt) + ": node rank " +
         Number(m.node_rank) + " of " + Number(m.node_count) + ", record " + m.record;
}
std::string Say(const agent::StartRound& m) { return "start round " + Number(m.round); }
std::string Say(const agent::Stop& m) { return "stop round " + Number(m.round) + ": " + m.why; }
std::string Say(const agent::Finish& m) { return "finish round " + Number(m.round); }
std::string Say(const agent::Verdict& m) {
  return "verdict " + Number(m.exit_code) + ": " + m.text;
}

}  // namespace

std::string Words(const agent::MemberMessage& message) {
  return std::visit([](const auto& m) { return Say(m); }, message);
}

std::string Words(const agent::CoordinatorMessage& message) {
  return std::visit([](const auto& m) { return Say(m); }, message);
}

std::string Words(agent::JobPhase phase) {
  static constexpr const char* kPhases[] = {"gathering", "preparing", "running", "stopping",
                                            "pausing",   "finishing", "over"};
  return kPhases[static_cast<int>(phase)];
}

std::string Words(const agent::Announcement& announcement, Duration since_start) {
  using Time = std::chrono::system_clock::time_point;
  std::string line = agent::events::FormatEvent(
      {.time = Time(std::chrono::duration_cast<Time::duration>(since_start)),
       .run_id = "sim",
       .attempt = announcement.attempt,
       .payload = agent::events::PayloadOf(announcement.decision)});
  line.pop_back();  // the newline
  return line;
}

}  // namespace rankrun::sim
