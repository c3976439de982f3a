#include "agent/coordination/hosting.h"

#include <gtest/gtest.h>

#include <random>

namespace rankrun::agent {
namespace {

using List = std::vector<std::string>;

List WordsOf(const std::vector<HostingAction>& actions) {
  List words;
  for (const HostingAction& action : actions) {
    if (std::holds_alternative<StartCoordinator>(action)) words.push_back("host");
    if (const auto* find = std::get_if<FindHost>(&action)) words.push_back("find " + find->host);
    if (const auto* note = std::get_if<ShowNote>(&action)) words.push_back(note->text);
  }
  return words;
}

const Error kTaken{ErrorCode::kSystem, "listen: address in use"};
const Error kNoAddress{ErrorCode::kNotFound, "n1: no address"};
constexpr bool kJoining = true;

struct HostingTest : testing::Test {
  HostingTest() {
    nodes_.endpoints = {{"n1", 29400}, {"n1-ib", 29400}};
    nodes_.endpoint_origin = "--rdzv-endpoint";
  }
  Hosting First() const { return {nodes_, true, false}; }
  // Returns a first agent whose first endpoint is this host, but without its port.
  Hosting WithoutPort() const {
    Hosting hosting = First();
    EXPECT_EQ(hosting.OnLookedUp(true), HostingStart::kHost);
    EXPECT_TRUE(hosting.OnPortFailed(kTaken));
    return hosting;
  }
  Endpoint first() const { return nodes_.endpoints[0]; }

  NodesSpec nodes_;
};

// --- The start ---

TEST_F(HostingTest, ALaterAgentHostsTheCoordinatorOnlyIfAnEarlierOneDid) {
  for (std::optional<bool> is_host :
       {std::optional<bool>(), std::optional(true), std::optional(false)}) {
    nodes_.is_host = is_host;
    EXPECT_EQ(Hosting(nodes_, false, true).Start(), HostingStart::kHost);
    EXPECT_EQ(Hosting(nodes_, false, false).Start(), HostingStart::kJoin);
  }
}

TEST_F(HostingTest, TheUserDecidesForTheFirstAgent) {
  nodes_.is_host = true;
  EXPECT_EQ(First().Start(), HostingStart::kHost);
  nodes_.is_host = false;
  EXPECT_EQ(First().Start(), HostingStart::kJoin);
}

TEST_F(HostingTest, OtherwiseTheFirstEndpointDecides) {
  EXPECT_EQ(First().Start(), HostingStart::kLookUp);
  EXPECT_EQ(First().OnLookedUp(true), HostingStart::kHost);
  EXPECT_EQ(First().OnLookedUp(false), HostingStart::kJoin);
  EXPECT_EQ(First().OnLookedUp(kNoAddress), HostingStart::kJoin) << "not known yet";
}

TEST_F(HostingTest, TheNameOfANodeIsItsOwnWhateverAddressItHas) {
  nodes_.node_name = "n1";
  EXPECT_EQ(First().OnLookedUp(false), HostingStart::kHost);
  Hosting later = First();
  EXPECT_EQ(later.OnLookedUp(kNoAddress), HostingStart::kJoin) << "other nodes cannot find it, yet";
  EXPECT_EQ(WordsOf(later.OnFound("n1", false, kJoining)), List({"host"}));
  nodes_.node_name = "n1-ib";
  EXPECT_EQ(First().OnLookedUp(false), HostingStart::kJoin) << "only the first endpoint counts";
}

TEST_F(HostingTest, TheCoordinatorListensAtTheFirstEndpointUnlessItSharesThePortOfTheStore) {
  nodes_.endpoints[0].port = 7;
  EXPECT_EQ(First().port(), 7);
  nodes_.shares_port = true;
  EXPECT_EQ(First().port(), std::nullopt);
}

// --- The port ---

TEST_F(HostingTest, APortThatIsTakenIsAnErrorOnlyForTheHostThatTheUserHasChosen) {
  nodes_.is_host = true;
  Hosting chosen = First();
  auto failed = chosen.OnPortFailed(kTaken);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(failed.error().message, "--rdzv-endpoint: listen: address in use");
}

TEST_F(HostingTest, AnotherNodeMayHaveTakenThePortOfALaterAgent) {
  for (std::optional<bool> is_host : {std::optional<bool>(), std::optional(true)}) {
    nodes_.is_host = is_host;
    Hosting later(nodes_, false, true);
    EXPECT_TRUE(later.OnPortFailed(kTaken));
  }
}

TEST_F(HostingTest, AnotherNodeOfTheHostMayHaveThePort) {
  Hosting hosting = First();
  EXPECT_TRUE(hosting.OnPortFailed(kTaken));
}

TEST_F(HostingTest, APortThatAnotherJobHasReleasedIsTaken) {
  Hosting hosting = WithoutPort();
  hosting.OnOtherJob(first());
  EXPECT_EQ(WordsOf(hosting.OnRefused(first(), kJoining)), List({"host"}));
}

TEST_F(HostingTest, APortThatIsTakenAgainMayBeReleasedAgain) {
  Hosting hosting = WithoutPort();
  hosting.OnOtherJob(first());
  EXPECT_EQ(WordsOf(hosting.OnRefused(first(), kJoining)), List({"host"}));
  EXPECT_TRUE(hosting.OnPortFailed(kTaken));
  EXPECT_EQ(WordsOf(hosting.OnRefused(first(), kJoining)), List({"host"}));
  hosting.OnHosting();
  EXPECT_EQ(WordsOf(hosting.OnRefused(first(), kJoining)), List());
}

TEST_F(HostingTest, APortOfTheSameJobIsLeftToItsNode) {
  Hosting hosting = WithoutPort();
  EXPECT_EQ(WordsOf(hosting.OnRefused(first(), kJoining)), List())
      << "the other node has ended, or begins to listen";
}

TEST_F(HostingTest, OnlyTheFirstEndpointMatters) {
  for (const Endpoint& other : {nodes_.endpoints[1], Endpoint{"n1", 29401}}) {
    Hosting hosting = WithoutPort();
    hosting.OnOtherJob(other);
    EXPECT_EQ(WordsOf(hosting.OnRefused(first(), kJoining)), List());
    hosting.OnOtherJob(first());
    EXPECT_EQ(WordsOf(hosting.OnRefused(other, kJoining)), List());
    EXPECT_EQ(WordsOf(hosting.OnRefused(first(), kJoining)), List({"host"}));
  }
}

TEST_F(HostingTest, ANodeThatHasJoinedOrEndedTakesNoPort) {
  Hosting hosting = WithoutPort();
  hosting.OnOtherJob(first());
  EXPECT_EQ(WordsOf(hosting.OnRefused(first(), !kJoining)), List());
}

TEST_F(HostingTest, ANodeThatNeverWantedThePortDoesNotTakeIt) {
  Hosting elsewhere = First();
  elsewhere.OnLookedUp(false);
  elsewhere.OnOtherJob(first());
  EXPECT_EQ(WordsOf(elsewhere.OnRefused(first(), kJoining)), List());
  Hosting host = First();
  host.OnLookedUp(true);
  host.OnHosting();
  host.OnOtherJob(first());
  EXPECT_EQ(WordsOf(host.OnRefused(first(), kJoining)), List());
}

TEST_F(HostingTest, AnOtherJobCountsOnlyAfterThePortWasTaken) {
  Hosting hosting = First();
  hosting.OnOtherJob(first());
  EXPECT_TRUE(hosting.OnPortFailed(kTaken));
  EXPECT_EQ(WordsOf(hosting.OnRefused(first(), kJoining)), List());
}

// --- Look-ups while joining ---

TEST_F(HostingTest, AHostThatIsKnownFromTheStartNeedsNoLookUp) {
  Hosting host = First();
  host.OnLookedUp(true);
  host.OnHosting();
  EXPECT_EQ(WordsOf(host.OnJoining()), List());
  EXPECT_EQ(WordsOf(WithoutPort().OnJoining()), List());
  EXPECT_EQ(WordsOf(First().OnJoining()), List()) << "the user has decided";
}

TEST_F(HostingTest, AFailedLookUpIsContinuedAndShown) {
  Hosting hosting = First();
  hosting.OnLookedUp(kNoAddress);
  nodes_.join_timeout = std::chrono::seconds(90);
  EXPECT_EQ(
      WordsOf(hosting.OnJoining()),
      List({"rankrun: --rdzv-endpoint: n1: no address; trying again for up to 90.0 s, because "
            "this node may have to host the coordinator\n",
            "find n1"}));
  EXPECT_EQ(WordsOf(hosting.OnFound("n1", true, kJoining)), List({"host"}));
}

TEST_F(HostingTest, AHostThatIsFoundElsewhereHasFurtherEndpoints) {
  nodes_.endpoints.push_back({"n1", 29401});
  nodes_.endpoints.push_back({"n1-ib", 29402});
  nodes_.endpoints.push_back({"n1-eth", 29400});
  Hosting hosting = First();
  hosting.OnLookedUp(kNoAddress);
  const List each_once{"find n1-ib", "find n1-eth"};
  EXPECT_EQ(WordsOf(hosting.OnFound("n1", false, kJoining)), each_once);
  Hosting known = First();
  known.OnLookedUp(false);
  EXPECT_EQ(WordsOf(known.OnJoining()), each_once);
}

TEST_F(HostingTest, ANodeThatHasJoinedOrEndedHostsNoCoordinatorAnyMore) {
  Hosting hosting = First();
  hosting.OnLookedUp(kNoAddress);
  EXPECT_EQ(WordsOf(hosting.OnFound("n1", true, !kJoining)), List());
  EXPECT_EQ(WordsOf(hosting.OnFound("n1", false, !kJoining)), List());
}

TEST_F(HostingTest, ACoordinatorIsNotStartedTwice) {
  Hosting hosting = First();
  hosting.OnHosting();
  EXPECT_EQ(WordsOf(hosting.OnFound("n1", true, kJoining)), List());
}

TEST_F(HostingTest, AFurtherEndpointThatIsThisHostIsShown) {
  Hosting hosting = First();
  hosting.OnLookedUp(false);
  EXPECT_EQ(WordsOf(hosting.OnFound("n1-ib", false, kJoining)), List());
  for (bool is_joining : {true, false}) {
    EXPECT_EQ(WordsOf(hosting.OnFound("n1-ib", true, is_joining)),
              List({"rankrun: --rdzv-endpoint: n1-ib is this host, but the coordinator runs only "
                    "at the first endpoint, n1; the others must be addresses of the same host\n"}));
  }
}

// --- A coordinator that is not reached ---

constexpr Duration kLong = Hosting::kPatience;

TEST_F(HostingTest, FailuresAreShownOnceAfterSomeTime) {
  nodes_.join_timeout = std::chrono::seconds(90);
  nodes_.is_host = false;
  Hosting hosting = First();
  EXPECT_EQ(WordsOf(hosting.OnUnreached("n1: refused", kLong - Duration(1))), List());
  EXPECT_EQ(WordsOf(hosting.OnUnreached("n1: refused", kLong)),
            List({"rankrun: no coordinator yet: n1: refused; trying again for up to 90.0 s\n"}));
  EXPECT_EQ(WordsOf(hosting.OnUnreached("n1: refused", 2 * kLong)), List());
}

TEST_F(HostingTest, AnAddressOfNoNodeHasAHint) {
  const std::string hint =
      "; n1 (--rdzv-endpoint) is no address of this node; if no other node has it either, because "
      "it is that of a gateway or a Kubernetes Service, set --rdzv-conf is_host=1 on the node that "
      "it leads to, and is_host=0 on the others";
  Hosting elsewhere = First();
  elsewhere.OnLookedUp(false);
  EXPECT_EQ(elsewhere.UnownedHint(), hint);
  EXPECT_NE(WordsOf(elsewhere.OnUnreached("n1: refused", kLong))[0].find(hint), std::string::npos);
  Hosting found_later = First();
  found_later.OnLookedUp(kNoAddress);
  EXPECT_EQ(found_later.UnownedHint(), "") << "its address is not known";
  found_later.OnFound("n1", false, kJoining);
  EXPECT_EQ(found_later.UnownedHint(), hint);
  nodes_.is_host = false;
  EXPECT_EQ(elsewhere.UnownedHint(), "") << "the user has decided";
}

// --- Addresses ---

TEST_F(HostingTest, TheHostOfTheCoordinatorReachesItByLoopbackAtLast) {
  Hosting hosting = First();
  EXPECT_EQ(hosting.Endpoints(), nodes_.endpoints);
  hosting.OnHosting();
  std::vector<Endpoint> with_loopback = nodes_.endpoints;
  with_loopback.push_back({"127.0.0.1", 29400});
  EXPECT_EQ(hosting.Endpoints(), with_loopback);
  nodes_.endpoints = {{"127.0.0.1", 29400}};
  EXPECT_EQ(hosting.Endpoints(), nodes_.endpoints);
}

TEST_F(HostingTest, OtherNodesUseTheAddressThatTheUserHasSet) {
  nodes_.local_addr = "10.0.0.9";
  Hosting hosting = First();
  hosting.OnHosting();
  EXPECT_EQ(hosting.OwnAddresses(SocketAddress()), List({"10.0.0.9"}));
}

TEST_F(HostingTest, OtherNodesReachTheHostOfTheCoordinatorAtItsEndpoints) {
  nodes_.endpoints.push_back({"n1", 29401});
  Hosting hosting = First();
  hosting.OnHosting();
  EXPECT_EQ(hosting.OwnAddresses(std::nullopt), List({"n1", "n1-ib"}));
}

TEST_F(HostingTest, OtherNodesReachAMemberAtTheAddressOfItsLink) {
  auto address = SocketAddress::FromNumeric("10.0.0.2", 4);
  ASSERT_TRUE(address);
  EXPECT_EQ(First().OwnAddresses(*address), List({"10.0.0.2"}));
  EXPECT_EQ(First().OwnAddresses(std::nullopt), List());
}

TEST_F(HostingTest, TheHostOfTheCoordinatorDoesNotTakeTheRouteToItself) {
  auto link = SocketAddress::FromNumeric("127.0.0.1", 4);
  auto others = SocketAddress::FromNumeric("10.0.0.1", 4);
  ASSERT_TRUE(link && others);
  Hosting hosting = First();
  EXPECT_EQ(hosting.Route(std::nullopt, *others)->Host(), "10.0.0.1");
  hosting.OnHosting();
  EXPECT_EQ(hosting.Route(*others, *link)->Host(), "10.0.0.1");
  EXPECT_FALSE(hosting.Route(std::nullopt, *link)) << "no other node has connected yet";
}

TEST_F(HostingTest, ACoordinatorAtALoopbackAddressHasAHint) {
  nodes_.endpoints[0].host = "localhost";
  Hosting hosting = First();
  EXPECT_EQ(hosting.LoopbackHint(), "") << "the coordinator is not here";
  hosting.OnHosting();
  EXPECT_EQ(hosting.LoopbackHint(),
            "; localhost (--rdzv-endpoint) is a loopback address: nodes on other hosts cannot "
            "connect");
  nodes_.endpoints[0].host = "n1";
  EXPECT_EQ(hosting.LoopbackHint(), "");
}

// --- Orders ---

// Plays random events against a model: a coordinator starts only while the node joins, at most
// once, and from a taken port only after another job has answered there.
class RandomJoin {
 public:
  RandomJoin(const NodesSpec& nodes, unsigned seed)
      : nodes_(nodes), hosting_(nodes, true, false), random_(seed) {
    hosting_.OnLookedUp(kNoAddress);
  }

  void Run() {
    for (int event = 0; event < 20; ++event) {
      if (Roll(30) == 0) is_joining_ = false;
      const bool may_host = is_joining_ && !is_hosting_;
      const bool is_first = Roll(2) == 0;
      const Endpoint& at = nodes_.endpoints[is_first ? 0 : 1];
      switch (Roll(3)) {
        case 0:
          hosting_.OnOtherJob(at);
          was_other_ |= was_taken_ && !is_hosting_ && is_first;
          break;
        case 1:
          Check(hosting_.OnRefused(at, is_joining_),
                may_host && was_taken_ && was_other_ && is_first);
          break;
        default:
          Check(hosting_.OnFound("n1", true, is_joining_), may_host);
      }
    }
  }

 private:
  unsigned Roll(unsigned sides) { return static_cast<unsigned>(random_() % sides); }

  void Check(const std::vector<HostingAction>& actions, bool may_host) {
    EXPECT_EQ(WordsOf(actions), may_host ? List({"host"}) : List());
    if (!may_host) return;
    if (Roll(2) == 0) {
      is_hosting_ = true;
      return hosting_.OnHosting();
    }
    was_taken_ = true;
    EXPECT_TRUE(hosting_.OnPortFailed(kTaken));
  }

  const NodesSpec& nodes_;
  Hosting hosting_;
  std::minstd_rand random_;
  bool is_joining_ = true;
  bool is_hosting_ = false;
  bool was_taken_ = false;
  bool was_other_ = false;
};

TEST_F(HostingTest, NoOrderOfEventsStartsACoordinatorThatDoesNotBelongHere) {
  for (unsigned seed = 1; seed <= 2'000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomJoin(nodes_, seed).Run();
  }
}

}  // namespace
}  // namespace rankrun::agent
