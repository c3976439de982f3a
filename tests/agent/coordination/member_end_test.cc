#include "agent/coordination/member_end.h"

#include <gtest/gtest.h>

#include <random>

#include "agent/job/exit_codes.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using List = std::vector<std::string>;

// Words for an action, so that a test can list the expected ones.
struct Words {
  std::string operator()(const SendOwnPart&) const { return "send own part"; }
  std::string operator()(const ShowOwnPart& a) const {
    const std::string told = a.told_failure.empty() ? "" : ", told of " + a.told_failure;
    return "show own part, " + End(a.end.exit_code, a.end.text) + told;
  }
  std::string operator()(const PermitRestart& a) const {
    return a.is_permitted ? "permit restart" : "forbid restart";
  }
  std::string operator()(const CloseLink&) const { return "close"; }
  std::string operator()(const EndAgent& a) const { return "end " + End(a.exit_code, a.text); }
  static std::string End(int exit_code, const std::string& text) {
    return std::to_string(exit_code) + " " + text;
  }
};

List WordsOf(const std::vector<EndAction>& actions) {
  List words;
  for (const EndAction& action : actions) words.push_back(std::visit(Words{}, action));
  return words;
}

constexpr seconds kNodeTimeout{10};
constexpr seconds kReportTimeout{3};

struct MemberEndTest : testing::Test {
  List Own(int attempt) { return WordsOf(end_.OnOwnPart(attempt, view_)); }
  List LinkUp() { return WordsOf(end_.OnLinkUp()); }
  void Merged(int attempt, std::optional<int> exit_code = {}) {
    end_.OnMergedReport({attempt, !exit_code, exit_code}, view_.now);
  }
  List End(int exit_code = 7, const std::string& hint = "") {
    return WordsOf(end_.OnEnd({exit_code, "why"}, hint, view_));
  }
  List Tick() { return WordsOf(end_.OnTick(view_)); }
  // Ticks at the deadline, which is `after` from now.
  List TickAfter(Duration after) {
    EXPECT_EQ(end_.deadline(), view_.now + after);
    if (after > Duration::zero()) {
      view_.now += after - milliseconds(1);
      EXPECT_EQ(Tick(), List()) << "too early";
      view_.now += milliseconds(1);
    }
    return Tick();
  }
  void Host(bool was_used) {
    view_.is_hosting = true;
    view_.host_was_used = was_used;
  }

  EndView view_{.is_link_up = true,
                .is_hosting = false,
                .host_was_used = false,
                .now = TimePoint(seconds(9))};
  MemberEnd end_{kNodeTimeout};
};

// --- Without a report ---

TEST_F(MemberEndTest, ANodeWithoutAReportEndsAtOnce) {
  EXPECT_FALSE(end_.has_ended());
  EXPECT_EQ(end_.deadline(), std::nullopt);
  EXPECT_EQ(Tick(), List());
  EXPECT_EQ(End(), List({"forbid restart"}));
  EXPECT_TRUE(end_.has_ended());
  EXPECT_EQ(TickAfter(seconds(0)), List({"close", "end 7 why"}));
  EXPECT_EQ(end_.deadline(), std::nullopt);
  EXPECT_EQ(Tick(), List()) << "once only";
}

TEST_F(MemberEndTest, TheHintIsForAnEndWithoutARendezvousOnly) {
  for (const auto& [code, text] : {std::pair(kExitNoRendezvous, "end 201 why; a hint"),
                                   std::pair(kExitLostCoordinator, "end 206 why")}) {
    MemberEnd end(kNodeTimeout);
    end.OnEnd({code, "why"}, "; a hint", view_);
    EXPECT_EQ(WordsOf(end.OnTick(view_)), List({"close", text}));
  }
}

// --- Parts of a report ---

TEST_F(MemberEndTest, TheOwnPartIsSentAtOnceIfTheLinkIsUp) {
  EXPECT_EQ(Own(0), List({"send own part"}));
  view_.is_link_up = false;
  EXPECT_EQ(Own(1), List());
}

TEST_F(MemberEndTest, TheOwnPartIsRepeatedOnEachLinkUntilTheMergedReportArrives) {
  EXPECT_EQ(LinkUp(), List()) << "there is none";
  view_.is_link_up = false;
  Own(1);
  for (int link = 0; link < 3; ++link) EXPECT_EQ(LinkUp(), List({"send own part"}));
  Merged(0);
  EXPECT_EQ(LinkUp(), List({"send own part"})) << "of an earlier attempt";
  Merged(1);
  EXPECT_EQ(LinkUp(), List());
  Own(2);
  EXPECT_EQ(LinkUp(), List({"send own part"}));
  Merged(3);
  EXPECT_EQ(LinkUp(), List()) << "a later attempt";
}

TEST_F(MemberEndTest, AReportIsShownOnce) {
  EXPECT_TRUE(end_.OnMergedReport({0, true, std::nullopt}, view_.now));
  EXPECT_FALSE(end_.OnMergedReport({0, true, std::nullopt}, view_.now));
  EXPECT_TRUE(end_.OnMergedReport({1, true, std::nullopt}, view_.now));
}

// --- Waiting for the merged report ---

// Its evidence takes up to a second.
TEST_F(MemberEndTest, AnEndWithoutALinkWaitsForTheOwnPart) {
  view_.is_link_up = false;
  end_.OnAnnounced(2);
  EXPECT_EQ(End(), List({"forbid restart"}));
  EXPECT_EQ(Tick(), List());
  EXPECT_EQ(Own(2), List());
  EXPECT_EQ(TickAfter(seconds(0)), List({"show own part, 7 why", "close", "end 7 why"}));
}

TEST_F(MemberEndTest, ALinkThatBreaksAfterTheEndMayComeBack) {
  end_.OnAnnounced(2);
  End();
  view_.is_link_up = false;
  EXPECT_EQ(Own(2), List());
  EXPECT_EQ(Tick(), List());
  view_.is_link_up = true;
  EXPECT_EQ(LinkUp(), List({"send own part"}));
}

TEST_F(MemberEndTest, AnEndWithoutALinkDoesNotWaitForEver) {
  view_.is_link_up = false;
  end_.OnAnnounced(2);
  End();
  EXPECT_EQ(TickAfter(kReportTimeout), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, AFailureThatTheCoordinatorHasToldOfIsKeptForTheRound) {
  end_.OnStop({"rank 4 failed", true, false});
  end_.OnStop({"lost the coordinator", true, true});
  end_.OnAnnounced(2);
  Own(2);
  End();
  EXPECT_EQ(TickAfter(kReportTimeout),
            List({"show own part, 7 why, told of rank 4 failed", "close", "end 7 why"}));
}

TEST_F(MemberEndTest, ANodeThatHasSucceededKnowsTheFailureElsewhere) {
  view_.is_link_up = false;
  end_.OnReportSuccess({"rank 4 failed"});
  end_.OnAnnounced(2);
  Own(2);
  End();
  EXPECT_EQ(Tick(), List({"show own part, 7 why, told of rank 4 failed", "close", "end 7 why"}));
}

TEST_F(MemberEndTest, AFailureOfAnEarlierRoundIsForgotten) {
  end_.OnStop({"rank 4 failed", true, false});
  end_.OnRound();
  end_.OnAnnounced(2);
  Own(2);
  End();
  EXPECT_EQ(TickAfter(kReportTimeout), List({"show own part, 7 why", "close", "end 7 why"}));
}

TEST_F(MemberEndTest, AnAnnouncedReportIsAwaited) {
  end_.OnAnnounced(2);
  Own(2);
  EXPECT_EQ(End(), List({"forbid restart"}));
  EXPECT_EQ(TickAfter(kReportTimeout), List({"show own part, 7 why", "close", "end 7 why"}));
}

TEST_F(MemberEndTest, TheMergedReportEndsTheWait) {
  end_.OnAnnounced(2);
  Own(2);
  End();
  view_.now += seconds(1);
  Merged(1);
  EXPECT_EQ(Tick(), List()) << "of an earlier attempt";
  Merged(2);
  EXPECT_EQ(TickAfter(seconds(0)), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, AMergedReportBeforeTheEndLeavesNothingToWaitFor) {
  end_.OnAnnounced(2);
  Own(2);
  Merged(2);
  EXPECT_EQ(end_.deadline(), std::nullopt);
  End();
  EXPECT_EQ(TickAfter(seconds(0)), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, WithoutALinkTheOwnPartIsShownAtOnce) {
  end_.OnAnnounced(2);
  view_.is_link_up = false;
  Own(2);
  End(kExitLostCoordinator);
  EXPECT_EQ(TickAfter(seconds(0)), List({"show own part, 206 why", "close", "end 206 why"}));
}

TEST_F(MemberEndTest, AnOwnPartThatNeverCameIsNotReplacedByThatOfAnotherAttempt) {
  Own(1);
  end_.OnAnnounced(2);
  End();
  EXPECT_EQ(TickAfter(kReportTimeout), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, AnOwnPartThatComesDuringTheWaitIsShown) {
  end_.OnAnnounced(2);
  End();
  EXPECT_EQ(Own(2), List({"send own part"}));
  EXPECT_EQ(TickAfter(kReportTimeout), List({"show own part, 7 why", "close", "end 7 why"}));
}

TEST_F(MemberEndTest, ANewRoundMakesReportsOnEarlierAttemptsNeedless) {
  end_.OnAnnounced(2);
  Own(2);
  end_.OnRound();
  End();
  EXPECT_EQ(TickAfter(seconds(0)), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, ANodeWithoutAFailureWaitsForTheReportThatTheVerdictPromises) {
  end_.OnVerdict({.exit_code = 7, .text = "", .report_follows = true});
  Own(0);
  End();
  view_.now += seconds(1);
  Merged(0);  // one that it had missed
  EXPECT_NE(end_.deadline(), view_.now);
  Merged(1, 7);
  EXPECT_EQ(TickAfter(seconds(0)), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, APromisedReportThatNeverComesIsNotReplacedByAnOwnPart) {
  Own(0);
  end_.OnVerdict({.exit_code = 7, .text = "", .report_follows = true});
  End();
  EXPECT_EQ(TickAfter(kReportTimeout), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, AVerdictDoesNotReplaceTheAttemptThatIsAwaited) {
  end_.OnAnnounced(2);
  end_.OnVerdict({.exit_code = 7, .text = "", .report_follows = true});
  End();
  Merged(1);
  EXPECT_EQ(TickAfter(kReportTimeout), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, AVerdictWithoutAReportPromisesNone) {
  end_.OnVerdict({.exit_code = 7, .text = "", .report_follows = false});
  End();
  EXPECT_EQ(TickAfter(seconds(0)), List({"close", "end 7 why"}));
}

// --- The exit code ---

TEST_F(MemberEndTest, TheExitCodeIsThatOfTheMergedReport) {
  Merged(0, 42);
  End(7);
  EXPECT_EQ(Tick(), List({"close", "end 42 why"}));
}

TEST_F(MemberEndTest, AFailedJobDoesNotEndWithTheCodeOfASuccess) {
  Merged(0, 0);
  End(7);
  EXPECT_EQ(Tick(), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, AReportOnAnAttemptThatIsRepeatedHasNoExitCode) {
  end_.OnMergedReport({0, true, 42}, view_.now);
  End(7);
  EXPECT_EQ(Tick(), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, TheLastReportWithoutAnAttemptAfterItCounts) {
  Merged(0, 42);
  Merged(1);
  EXPECT_EQ(WordsOf(end_.OnEnd({7, "why"}, "", view_)).size(), 1U);
  end_.OnMergedReport({2, false, std::nullopt}, view_.now);
  EXPECT_EQ(Tick(), List({"close", "end 7 why"})) << "its cause has no code";
}

TEST_F(MemberEndTest, ASuccessStaysASuccess) {
  Merged(0, 42);
  End(0);
  EXPECT_EQ(Tick(), List({"close", "end 0 why"}));
}

// --- The host of the coordinator ---

TEST_F(MemberEndTest, AHostThatNobodyUsedEndsAtOnce) {
  Host(false);
  EXPECT_EQ(End(), List({"permit restart"}));
  EXPECT_EQ(TickAfter(seconds(0)), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, AHostStaysUntilItsCoordinatorRetires) {
  Host(true);
  EXPECT_EQ(End(), List({"permit restart"})) << "others may still need the verdict";
  EXPECT_EQ(TickAfter(seconds(0)), List({"close"}));
  view_.now += seconds(4);
  EXPECT_EQ(Tick(), List());
  end_.OnRetired(view_.now);
  EXPECT_EQ(TickAfter(seconds(0)), List({"end 7 why"}));
  EXPECT_EQ(end_.deadline(), std::nullopt);
}

TEST_F(MemberEndTest, AHostDoesNotStayForEver) {
  Host(true);
  End();
  EXPECT_EQ(TickAfter(seconds(0)), List({"close"}));
  EXPECT_EQ(TickAfter(3 * kNodeTimeout), List({"end 7 why"}));
  end_.OnRetired(view_.now);
  EXPECT_EQ(Tick(), List()) << "once only";
}

TEST_F(MemberEndTest, AHostWhoseCoordinatorHasRetiredBeforeEndsAtOnce) {
  Host(true);
  end_.OnRetired(view_.now);
  EXPECT_EQ(end_.deadline(), std::nullopt) << "this node is not over";
  EXPECT_EQ(Tick(), List());
  End();
  EXPECT_EQ(TickAfter(seconds(0)), List({"close", "end 7 why"}));
}

TEST_F(MemberEndTest, AHostWaitsForTheReportToo) {
  Host(true);
  end_.OnAnnounced(2);
  Own(2);
  End();
  EXPECT_EQ(TickAfter(kReportTimeout), List({"show own part, 7 why", "close"}));
  EXPECT_EQ(TickAfter(3 * kNodeTimeout), List({"end 7 why"}));
}

TEST_F(MemberEndTest, AHostThatStaysHasItsReportAlready) {
  Host(true);
  end_.OnAnnounced(2);
  End();
  view_.now += kReportTimeout;
  EXPECT_EQ(Tick(), List({"close"}));
  view_.now += seconds(1);
  Merged(2, 42);
  EXPECT_EQ(Tick(), List()) << "the link is closed";
  end_.OnRetired(view_.now);
  EXPECT_EQ(Tick(), List({"end 42 why"}));
}

TEST_F(MemberEndTest, ARetiredCoordinatorEndsTheWaitForTheMergedReport) {
  Host(true);
  end_.OnAnnounced(2);
  Own(2);
  End();
  view_.now += seconds(1);
  end_.OnRetired(view_.now);
  EXPECT_EQ(TickAfter(seconds(0)), List({"show own part, 7 why", "close", "end 7 why"}));
  EXPECT_EQ(end_.deadline(), std::nullopt);
}

TEST_F(MemberEndTest, ARetiredCoordinatorDoesNotEndTheWaitForTheOwnPart) {
  Host(true);
  end_.OnAnnounced(2);
  End();
  end_.OnRetired(view_.now);
  EXPECT_EQ(Tick(), List());
  view_.now += milliseconds(100);
  EXPECT_EQ(Own(2), List());
  EXPECT_EQ(TickAfter(seconds(0)), List({"show own part, 7 why", "close", "end 7 why"}));
}

// --- Orders ---

// Plays random events and checks that the agent ends exactly once, within its limits.
class RandomEnd {
 public:
  explicit RandomEnd(unsigned seed) : random_(seed) {
    view_ = {.is_link_up = Roll(2) == 0,
             .is_hosting = Roll(2) == 0,
             .host_was_used = Roll(2) == 0,
             .now = TimePoint(seconds(9))};
  }

  void Run() {
    for (int event = 0; event < 8; ++event) Report();
    if (view_.is_hosting && Roll(8) == 0) Retire();
    ended_at_ = view_.now;
    Check(end_.OnEnd({Roll(2), "why"}, "", view_));
    for (int event = 0; ends_ == 0 && event < 1'000; ++event) {
      Report();
      if (view_.is_hosting && Roll(8) == 0) Retire();
      view_.now += milliseconds(Roll(2'000));
      Check(end_.OnTick(view_));
    }
    EXPECT_EQ(ends_, 1);
    const Duration limit = view_.is_hosting ? kReportTimeout + 3 * kNodeTimeout : kReportTimeout;
    EXPECT_LE(view_.now - ended_at_, limit + seconds(4)) << "at most two ticks late";
    EXPECT_EQ(end_.deadline(), std::nullopt);
    Check(end_.OnTick(view_));
    EXPECT_EQ(ends_, 1);
  }

 private:
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }

  void Retire() {
    end_.OnRetired(view_.now);
    has_retired_ = true;
  }

  // One event of a link, which an agent that has hung up does not have.
  void Report() {
    if (is_closed_) return;
    switch (Roll(6)) {
      case 0:
        return end_.OnAnnounced(Roll(3));
      case 1:
        return end_.OnVerdict({.exit_code = 1, .text = "", .report_follows = Roll(2) == 0});
      case 2:
        return Check(end_.OnOwnPart(Roll(3), view_));
      case 3:
        end_.OnMergedReport({Roll(3), Roll(2) == 0, 1}, view_.now);
        return;
      case 4:
        return end_.has_ended() ? void() : end_.OnRound();
      default:
        view_.is_link_up = !view_.is_link_up;
        if (view_.is_link_up) Check(end_.OnLinkUp());
    }
  }

  void Check(const std::vector<EndAction>& actions) {
    for (const EndAction& action : actions) {
      EXPECT_EQ(ends_, 0) << "nothing after the end";
      std::visit([this](const auto& a) { On(a); }, action);
    }
  }
  void On(const SendOwnPart&) { EXPECT_TRUE(view_.is_link_up); }
  void On(const ShowOwnPart&) { EXPECT_EQ(++shows_, 1); }
  void On(const PermitRestart& action) { EXPECT_EQ(action.is_permitted, view_.is_hosting); }
  void On(const CloseLink&) { EXPECT_FALSE(std::exchange(is_closed_, true)); }
  void On(const EndAgent&) {
    ends_ += 1;
    EXPECT_TRUE(is_closed_ || has_retired_);
    const bool is_needed = view_.is_hosting && view_.host_was_used && !has_retired_;
    EXPECT_TRUE(!is_needed || view_.now - ended_at_ >= 3 * kNodeTimeout);
  }

  std::minstd_rand random_;
  EndView view_;
  MemberEnd end_{kNodeTimeout};
  TimePoint ended_at_;
  bool has_retired_ = false;
  bool is_closed_ = false;
  int shows_ = 0;
  int ends_ = 0;
};

TEST(MemberEndPropertyTest, EachAgentEndsOnceWithinItsLimits) {
  for (unsigned seed = 1; seed <= 5'000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomEnd(seed).Run();
  }
}

}  // namespace
}  // namespace rankrun::agent
