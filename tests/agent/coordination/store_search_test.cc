#include "agent/coordination/store_search.h"

#include <gtest/gtest.h>

#include <random>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Words for an action, so that a test can list the expected ones.
struct Words {
  std::string operator()(const DialStore& a) const { return "dial " + Text(a.store); }
  std::string operator()(const DialLater& a) const {
    return "pause " + std::to_string(std::chrono::duration_cast<milliseconds>(a.pause).count());
  }
  std::string operator()(const AdmitClients& a) const {
    std::string text = "admit";
    for (const std::string& client : a.clients) text += " " + client;
    return text;
  }
  std::string operator()(const UseStore& a) const { return "use " + Text(a.store); }
  std::string operator()(const StoreUnreachable& a) const {
    return (a.is_worth_a_restart ? "restart: " : "fatal: ") + a.why;
  }
  std::string operator()(const SearchCancelled&) const { return "cancelled"; }
  static std::string Text(const Endpoint& store) {
    return store.host + ":" + std::to_string(store.port);
  }
};

using List = std::vector<std::string>;

List WordsOf(const std::vector<StoreAction>& actions) {
  List words;
  for (const StoreAction& action : actions) words.push_back(std::visit(Words{}, action));
  return words;
}

// A node with the node timeout of 10 s, which is not the first of its round.
struct StoreSearchTest : testing::Test {
  List Begin(List addresses, int attempt = 0, int node_rank = 1, List allowlist = {}) {
    Prepare round{.round = 1, .attempt = attempt, .node_rank = node_rank};
    StartRound start{.round = 1,
                     .store_addresses = std::move(addresses),
                     .store_port = 5,
                     .store_allowlist = std::move(allowlist)};
    return WordsOf(search_.Begin(round, start, view_));
  }
  List Next() { return WordsOf(search_.Next(view_)); }
  List Connected() { return WordsOf(search_.OnConnected(view_)); }
  List Failed(const std::string& why) { return WordsOf(search_.OnFailed(why)); }
  List Stop() {
    view_.is_running = false;
    return WordsOf(search_.OnStop());
  }
  void ReachCoordinatorFrom(const std::string& address) {
    view_.local_address = *SocketAddress::FromNumeric(address, 1);
  }

  SearchView view_{true, std::nullopt, TimePoint(std::chrono::hours(1))};
  StoreSearch search_{seconds(10)};
};

TEST_F(StoreSearchTest, TheFirstNodeAdmitsTheOthersBeforeItDials) {
  EXPECT_EQ(Begin({"a", "b"}, 0, 0, {"x", "y"}), List({"admit x y", "dial a:5"}));
  EXPECT_EQ(Connected(), List({"use a:5"}));
  EXPECT_EQ(Begin({"a"}, 0, 0), List({"admit", "dial a:5"})) << "without a list it admits all";
}

TEST_F(StoreSearchTest, TheFirstNodePassesAnAddressThatDoesNotLeadBackToIt) {
  Begin({"10.96.0.1", "10.0.0.2"}, 0, 0);
  Failed("10.96.0.1: refused");
  EXPECT_EQ(Next(), List({"dial 10.0.0.2:5"}));
  EXPECT_EQ(Connected(), List({"use 10.0.0.2:5"}));
}

TEST_F(StoreSearchTest, TheFirstNodeReachesItsOwnStoreByLoopback) {
  ReachCoordinatorFrom("10.0.0.2");
  EXPECT_EQ(Begin({"127.0.0.1"}, 0, 0), List({"admit", "dial 127.0.0.1:5"}));
}

TEST_F(StoreSearchTest, NoAddressIsFatalInEachAttempt) {
  for (int attempt : {0, 1}) {
    for (int node_rank : {0, 1}) {
      EXPECT_EQ(Begin({}, attempt, node_rank),
                List({"fatal: the coordinator sent no address of the store"}));
      EXPECT_EQ(Next(), List());
    }
  }
}

TEST_F(StoreSearchTest, TheFirstAddressThatAnswersIsUsed) {
  EXPECT_EQ(Begin({"a", "b"}), List({"dial a:5"}));
  EXPECT_EQ(Connected(), List({"use a:5"}));
  EXPECT_EQ(Next(), List()) << "the search is over";
}

TEST_F(StoreSearchTest, TheNextAddressIsDialledAfterTheCallbackOfTheDialBefore) {
  Begin({"a", "b"});
  EXPECT_EQ(Failed("a: refused"), List({"pause 0"}));
  EXPECT_EQ(Next(), List({"dial b:5"}));
  EXPECT_EQ(Connected(), List({"use b:5"}));
}

TEST_F(StoreSearchTest, AllAddressesAreDialledAgainUntilTheNodeTimeout) {
  Begin({"a", "b"});
  Failed("a: first");
  Next();
  Failed("b: first");
  view_.now += seconds(10) - milliseconds(1);
  EXPECT_EQ(Next(), List({"pause 50"}));
  EXPECT_EQ(Next(), List({"dial a:5"}));
  Failed("a: last");
  view_.now += milliseconds(1);
  EXPECT_EQ(Next(), List({"dial b:5"})) << "the pass is finished";
  Failed("b: last");
  EXPECT_EQ(Next(), List({"fatal: cannot reach the store of rank 0: a: last; b: last"}));
  EXPECT_EQ(Next(), List());
}

TEST_F(StoreSearchTest, AStoreThatAnEarlierAttemptHasReachedIsWorthARestart) {
  Begin({"a"}, 1);
  Failed("a: no answer");
  view_.now += seconds(10);
  EXPECT_EQ(Next(), List({"restart: cannot reach the store of rank 0: a: no answer"}));
}

constexpr const char* kLoopback =
    " is a loopback address, which other hosts cannot reach (set --local-addr or another "
    "--rdzv-endpoint)";

TEST_F(StoreSearchTest, AnotherHostDialsNoLoopbackAddress) {
  ReachCoordinatorFrom("10.0.0.2");
  EXPECT_EQ(Begin({"127.0.0.1", "localhost", "b", "::1"}), List({"dial b:5"}));
  Failed("b: refused");
  view_.now += seconds(10);
  EXPECT_EQ(Next(),
            List({std::string("fatal: cannot reach the store of rank 0: 127.0.0.1") + kLoopback +
                  "; localhost" + kLoopback + "; b: refused; ::1" + kLoopback}));
}

TEST_F(StoreSearchTest, LoopbackAddressesAloneAreNotTriedAgain) {
  ReachCoordinatorFrom("10.0.0.2");
  EXPECT_EQ(Begin({"::1"}),
            List({std::string("fatal: cannot reach the store of rank 0: ::1") + kLoopback}));
  EXPECT_EQ(Begin({"::1"}, 1),
            List({std::string("restart: cannot reach the store of rank 0: ::1") + kLoopback}));
}

TEST_F(StoreSearchTest, TheSameHostDialsLoopbackAddresses) {
  EXPECT_EQ(Begin({"127.0.0.1"}), List({"dial 127.0.0.1:5"})) << "the connection is unknown";
  ReachCoordinatorFrom("127.0.0.1");
  EXPECT_EQ(Begin({"127.0.0.1"}), List({"dial 127.0.0.1:5"}));
}

TEST_F(StoreSearchTest, TheAddressOfTheNodeCountsAtTheTimeOfTheDial) {
  EXPECT_EQ(Begin({"a", "::1"}), List({"dial a:5"}));
  Failed("a: refused");
  ReachCoordinatorFrom("10.0.0.2");
  EXPECT_EQ(Next(), List({"pause 50"})) << "a link that came up meanwhile";
}

TEST_F(StoreSearchTest, AStopEndsTheSearchWithoutTheDialInProgress) {
  Begin({"a"});
  EXPECT_EQ(Stop(), List({"pause 0"}));
  EXPECT_EQ(Next(), List({"cancelled"}));
  EXPECT_EQ(Next(), List());
}

TEST_F(StoreSearchTest, AStopBeforeTheFirstDialEndsTheSearchAtOnce) {
  view_.is_running = false;
  EXPECT_EQ(Begin({"a"}), List({"cancelled"}));
}

TEST_F(StoreSearchTest, AStopInThePauseEndsTheSearch) {
  Begin({"a"});
  Failed("a: refused");
  EXPECT_EQ(Next(), List({"pause 50"}));
  EXPECT_EQ(Stop(), List({"pause 0"}));
  EXPECT_EQ(Next(), List({"cancelled"}));
}

TEST_F(StoreSearchTest, ADialThatEndsAfterTheStopStartsNoWorker) {
  Begin({"a"});
  Stop();
  EXPECT_EQ(Connected(), List({"cancelled"}));
  EXPECT_EQ(Next(), List()) << "the call that the stop has asked for";
  view_.is_running = true;
  Begin({"a"});
  Stop();
  EXPECT_EQ(Failed("a: refused"), List({"pause 0"}));
  EXPECT_EQ(Next(), List({"cancelled"}));
}

TEST_F(StoreSearchTest, AStopWithoutASearchNeedsNothing) {
  EXPECT_EQ(Stop(), List());
  view_.is_running = true;
  Begin({"a"});
  Connected();
  EXPECT_EQ(Stop(), List()) << "the workers run";
}

TEST_F(StoreSearchTest, WithoutASearchNothingHappens) {
  EXPECT_EQ(Next(), List());
  EXPECT_EQ(Connected(), List());
  EXPECT_EQ(Failed("a: refused"), List());
}

TEST_F(StoreSearchTest, TheNextRoundBeginsWithItsFirstAddressAndNoFailures) {
  Begin({"a", "b"});
  Failed("a: old");
  Next();
  Stop();
  Next();
  view_ = {true, std::nullopt, view_.now + seconds(60)};
  EXPECT_EQ(Begin({"c"}), List({"dial c:5"}));
  Failed("c: new");
  EXPECT_EQ(Next(), List({"pause 50"})) << "it has its own node timeout";
  Next();
  Failed("c: new");
  view_.now += seconds(10);
  EXPECT_EQ(Next(), List({"fatal: cannot reach the store of rank 0: c: new"}));
}

TEST_F(StoreSearchTest, EachRoundHasToDialBeforeItTriesAgain) {
  Begin({"a"});
  Failed("a: refused");
  Stop();
  Next();
  view_.is_running = true;
  ReachCoordinatorFrom("10.0.0.2");
  EXPECT_EQ(Begin({"::1"}),
            List({std::string("fatal: cannot reach the store of rank 0: ::1") + kLoopback}));
}

// Plays one search with random answers, pauses and stops, and checks each action.
class RandomSearch {
 public:
  explicit RandomSearch(unsigned seed) : random_(seed) {}

  void Run() {
    Check(search_.Begin({.node_rank = 1}, {.store_addresses = {"a", "b", "c"}, .store_port = 5},
                        view_));
    for (int turn = 0; turn < 10'000 && outcomes_ == 0; ++turn) Turn();
    EXPECT_EQ(outcomes_, 1) << "the search ends";
    EXPECT_LT(view_.now, start_ + seconds(20)) << "soon after the node timeout";
    Check(search_.Next(view_));
    Check(search_.OnStop());
    EXPECT_EQ(outcomes_, 1) << "and only once";
  }

 private:
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }

  void Turn() {
    if (view_.is_running && Roll(40) == 0) {
      view_.is_running = false;
      Check(search_.OnStop());
    } else if (is_dialling_ && Roll(2) == 0) {
      view_.now += milliseconds(Roll(1'500));
      is_dialling_ = false;
      Check(Roll(15) == 0 ? search_.OnConnected(view_) : search_.OnFailed("down"));
    } else if (is_pausing_) {
      view_.now += milliseconds(Roll(100));
      is_dialling_ = is_pausing_ = false;
      Check(search_.Next(view_));
    }
  }

  void Check(const std::vector<StoreAction>& actions) {
    for (const StoreAction& action : actions) {
      EXPECT_EQ(outcomes_, 0) << "nothing after the end";
      std::visit([this](const auto& a) { On(a); }, action);
    }
  }
  void On(const DialStore& action) {
    EXPECT_FALSE(is_dialling_) << "one at a time";
    EXPECT_TRUE(view_.is_running);
    is_dialling_ = true;
    dialled_ = action.store.host;
  }
  void On(const DialLater& action) {
    is_pausing_ = true;
    if (action.pause == Duration::zero()) return;
    EXPECT_EQ(dialled_, "c") << "only after the last address";
    EXPECT_LT(view_.now, start_ + seconds(10));
  }
  void On(const AdmitClients&) { ADD_FAILURE() << "the store is elsewhere"; }
  void On(const UseStore& action) {
    outcomes_ += 1;
    EXPECT_TRUE(view_.is_running);
    EXPECT_EQ(action.store.host, dialled_);
  }
  void On(const StoreUnreachable& action) {
    outcomes_ += 1;
    EXPECT_TRUE(view_.is_running);
    EXPECT_GE(view_.now, start_ + seconds(10));
    EXPECT_EQ(action.why, "cannot reach the store of rank 0: down; down; down");
  }
  void On(const SearchCancelled&) {
    outcomes_ += 1;
    EXPECT_FALSE(view_.is_running);
  }

  std::minstd_rand random_;
  const TimePoint start_{std::chrono::hours(1)};
  SearchView view_{true, std::nullopt, start_};
  StoreSearch search_{seconds(10)};
  bool is_dialling_ = false;
  bool is_pausing_ = false;
  std::string dialled_;
  int outcomes_ = 0;
};

TEST(StoreSearchPropertyTest, EachSearchHasOneOutcomeThatFitsItsAnswers) {
  for (unsigned seed = 1; seed <= 2'000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomSearch(seed).Run();
  }
}

}  // namespace
}  // namespace rankrun::agent
