#include "comm/tcp/handshake.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace rankrun::comm::tcp {
namespace {

using State = HandshakeStep::State;

constexpr uint32_t kRanks = 4;
constexpr uint32_t kStreams = 3;

RankKey KeyOf(uint32_t rank) {
  RankKey key{};
  key[0] = static_cast<unsigned char>(rank);
  return key;
}

std::vector<RankKey> Keys() { return {KeyOf(0), KeyOf(1), KeyOf(2), KeyOf(3)}; }

struct HandshakeTest : testing::Test {
  const KeyRing keys{"group", Keys(), kStreams};
  const StreamId id{.dialer = 3, .listener = 1, .stream = 2};

  // Changes message `number` (0: hello) between the sides.
  using Change = std::function<void(size_t number, std::string& message)>;

  // Returns the state of the dialer and of the listener after a handshake.
  static std::pair<State, State> Run(DialerHandshake& dialer, ListenerHandshake& listener,
                                     const Change& change) {
    std::string hello = dialer.first();
    change(0, hello);
    HandshakeStep challenge = listener.Take(hello);
    if (challenge.state != State::kContinues) return {State::kContinues, challenge.state};
    change(1, challenge.reply);
    HandshakeStep proof = dialer.Take(challenge.reply);
    if (proof.state != State::kContinues) return {proof.state, State::kContinues};
    change(2, proof.reply);
    HandshakeStep accepted = listener.Take(proof.reply);
    if (accepted.state != State::kProven) return {State::kContinues, accepted.state};
    change(3, accepted.reply);
    return {dialer.Take(accepted.reply).state, accepted.state};
  }

  // Returns whether a rank that knows `theirs` is taken for the dialer of `of`.
  bool IsAccepted(const KeyRing& theirs, const StreamId& of) const {
    DialerHandshake dialer(theirs, of);
    ListenerHandshake listener(keys, id.listener);
    auto both = Run(dialer, listener, [](size_t, std::string&) {});
    return both == std::pair(State::kProven, State::kProven);
  }

  bool HelloIsRefused(const StreamId& of) const {
    KeyRing more("group", std::vector<RankKey>(100), 100);
    DialerHandshake dialer(more, of);
    return ListenerHandshake(keys, id.listener).Take(dialer.first()).state == State::kFailed;
  }
};

TEST_F(HandshakeTest, RanksOfOneGroupProveEachOther) {
  DialerHandshake dialer(keys, id);
  ListenerHandshake listener(keys, id.listener);
  auto both = Run(dialer, listener, [](size_t, std::string&) {});
  EXPECT_EQ(both, std::pair(State::kProven, State::kProven));
  EXPECT_EQ(listener.id(), id);
}

TEST_F(HandshakeTest, EveryChangedBitEndsIt) {
  const std::vector<size_t> sizes{kHelloBytes, kNonceBytes + kProofBytes, kProofBytes, 1};
  for (size_t number = 0; number < sizes.size(); ++number) {
    for (size_t bit = 0; bit < 8 * sizes[number]; ++bit) {
      DialerHandshake dialer(keys, id);
      ListenerHandshake listener(keys, id.listener);
      auto both = Run(dialer, listener, [&](size_t at, std::string& message) {
        if (at != number) return;
        ASSERT_EQ(message.size(), sizes[number]);
        message[bit / 8] = static_cast<char>(message[bit / 8] ^ 1 << bit % 8);
      });
      EXPECT_NE(both, std::pair(State::kProven, State::kProven)) << number << ", bit " << bit;
    }
  }
}

TEST_F(HandshakeTest, AnotherKeyOrGroupProvesNothing) {
  EXPECT_TRUE(IsAccepted(KeyRing("group", Keys(), kStreams), id));
  EXPECT_FALSE(IsAccepted(KeyRing("other", Keys(), kStreams), id));
  for (size_t rank : {1U, 3U}) {
    std::vector<RankKey> wrong = Keys();
    wrong[rank][31] = 1;
    EXPECT_FALSE(IsAccepted(KeyRing("group", wrong, kStreams), id));
  }
  std::vector<RankKey> unrelated = Keys();
  unrelated[0][31] = 1;
  EXPECT_TRUE(IsAccepted(KeyRing("group", unrelated, kStreams), id));
}

TEST_F(HandshakeTest, EachPairHasAKeyThatBothKnow) {
  EXPECT_EQ(keys.Of(1, 3), keys.Of(3, 1));
  EXPECT_NE(keys.Of(1, 3), keys.Of(1, 2));
  KeyRing same_key("group", std::vector<RankKey>(kRanks), kStreams);
  EXPECT_NE(same_key.Of(0, 1), same_key.Of(0, 2)) << "ranks are a part of it";
}

TEST_F(HandshakeTest, ARecordedHandshakeProvesNothing) {
  std::vector<std::string> recorded(4);
  auto record = [&](size_t number, std::string& message) { recorded[number] = message; };
  DialerHandshake dialer(keys, id);
  ListenerHandshake listener(keys, id.listener);
  Run(dialer, listener, record);

  ListenerHandshake again(keys, id.listener);
  EXPECT_EQ(again.Take(recorded[0]).state, State::kContinues);
  EXPECT_EQ(again.Take(recorded[2]).state, State::kFailed);
  DialerHandshake another(keys, id);
  EXPECT_EQ(another.Take(recorded[1]).state, State::kFailed);
}

TEST_F(HandshakeTest, TheListenersOwnProofIsNotTheDialers) {
  DialerHandshake dialer(keys, id);
  ListenerHandshake listener(keys, id.listener);
  std::string challenge = listener.Take(dialer.first()).reply;
  EXPECT_EQ(listener.Take(challenge.substr(kNonceBytes)).state, State::kFailed);
}

TEST_F(HandshakeTest, OnlyHigherRanksOfTheGroupMayConnect) {
  EXPECT_FALSE(HelloIsRefused({.dialer = 2, .listener = 1, .stream = 0}));
  EXPECT_TRUE(HelloIsRefused({.dialer = 0, .listener = 1, .stream = 0})) << "a lower rank";
  EXPECT_TRUE(HelloIsRefused({.dialer = 1, .listener = 1, .stream = 0})) << "itself";
  EXPECT_TRUE(HelloIsRefused({.dialer = 4, .listener = 1, .stream = 0})) << "no rank";
  EXPECT_TRUE(HelloIsRefused({.dialer = 3, .listener = 2, .stream = 0})) << "for another rank";
  EXPECT_TRUE(HelloIsRefused({.dialer = 3, .listener = 1, .stream = 3})) << "no stream";
}

TEST_F(HandshakeTest, AWrongFirstByteShowsAStranger) {
  ListenerHandshake listener(keys, id.listener);
  EXPECT_TRUE(listener.CanContinue(""));
  EXPECT_TRUE(listener.CanContinue("rank"));
  EXPECT_FALSE(listener.CanContinue("G"));
  EXPECT_FALSE(listener.CanContinue("rankrun\x01"));
  std::string hello = DialerHandshake(keys, id).first();
  EXPECT_TRUE(listener.CanContinue(hello));
  ASSERT_EQ(listener.Take(hello).state, State::kContinues);
  EXPECT_TRUE(listener.CanContinue("G")) << "a proof may begin with any byte";
}

TEST_F(HandshakeTest, NoncesAndKeysAreFresh) {
  EXPECT_NE(DialerHandshake(keys, id).first(), DialerHandshake(keys, id).first());
  EXPECT_NE(NewRankKey(), NewRankKey());
}

}  // namespace
}  // namespace rankrun::comm::tcp
