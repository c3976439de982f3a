#include "agent/nodes/control_codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/printable.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::json;

std::string Cbor(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

// Random field values, extreme ones among them.
class Contents {
 public:
  explicit Contents(unsigned seed) : random_(seed) {}

  int Int() {
    constexpr int kExtremes[] = {0, 1, -1, std::numeric_limits<int>::max(),
                                 std::numeric_limits<int>::min()};
    return random_() % 2 == 0 ? kExtremes[random_() % 5] : static_cast<int>(random_());
  }
  uint64_t Big() { return random_() % 2 == 0 ? ~uint64_t{0} : random_(); }
  uint16_t Port() { return static_cast<uint16_t>(random_()); }
  bool Bool() { return random_() % 2 == 0; }
  std::string Bytes() {
    std::string bytes;
    for (auto n = random_() % 20; n > 0; --n) bytes += static_cast<char>(random_());
    return bytes;
  }
  std::string Text() { return OneLine(Bytes()); }
  std::optional<int> Maybe() { return Bool() ? std::optional(Int()) : std::nullopt; }
  Cause TheCause() { return {Text(), Int(), Bool(), Bool(), Bool()}; }
  Hello TheHello() {
    Hello hello{.node = Big(), .incarnation = Int(), .name = Text(), .slots = Int()};
    hello.node_rank = Maybe();
    hello.node_index = Maybe();
    hello.addresses = {Text(), Text()};
    hello.round = Int();
    hello.work = static_cast<NodeState>(random_() % 6);
    if (Bool()) hello.failure = TheCause();
    hello.stop_ms = Int();
    if (Bool()) hello.stuck = StuckProcess{Int(), Text()};
    if (Bool()) hello.liveness_port = static_cast<uint16_t>(Int());
    return hello;
  }

  Relay TheRelay() {
    return {.kind = static_cast<RelayKind>(random_() % 3),
            .number = Big(),
            .content = Bytes(),
            .room = Port(),
            .limit_ms = Bool() ? std::optional<uint32_t>(Port()) : std::nullopt,
            .long_answers = Bool() ? std::optional<uint32_t>(Port()) : std::nullopt,
            .node = Text(),
            .missing = {Text(), Text()},
            .is_refused = Bool() ? std::optional(Bool()) : std::nullopt};
  }

  WhoseClients TheQuestion() {
    return {{{Big(), Text(), Port(), Text(), Port()}, {Big(), Text(), Port(), Text(), Port()}}};
  }
  ClientVerdicts TheVerdicts() { return {{{Big(), Text(), Bool()}, {Big(), ""}}}; }

  std::vector<MemberMessage> MemberMessages() {
    return {TheHello(),
            Prepared{Int(), Port(), {Text(), Text()}, Text()},
            Failed{Int(), TheCause()},
            Done{Int()},
            Stopped{Int()},
            FinishSeen{Int()},
            Leave{Text()},
            Close{TheCause()},
            Beat{Big(), Bool() ? std::optional(std::vector{Int(), Int()}) : std::nullopt},
            Report{Int(), Bytes()},
            Stuck{Int(), {Int(), Text()}},
            NodeHealth{Int(), Bytes()},
            NodeStacks{Int(), Bytes()},
            TheRelay(),
            TheQuestion(),
            TheVerdicts()};
  }
  std::vector<CoordinatorMessage> CoordinatorMessages() {
    Prepare prepare{Int(), Int(), Int(), Int(), Int(), Int(), Int(), Bytes()};
    StartRound go{.round = Int(), .store_addresses = {Text()}, .store_port = Port()};
    go.store_allowlist = {Text()};
    return {Waiting{Text()},
            Refusal{Text()},
            prepare,
            go,
            Stop{Int(), Text(), Bool()},
            Finish{Int()},
            Verdict{Int(), Text(), Bool()},
            Beat{Big()},
            JobReport{Int(), Bytes()},
            NodeLost{Text()},
            HealthWanted{Int()},
            HangNotice{Text()},
            StacksWanted{Int()},
            HangFound{Int(), Text(), {{Int(), Text()}, {Int(), Text()}}, Int()},
            TheRelay(),
            TheQuestion(),
            TheVerdicts()};
  }
  CoordinatorRecord Record() {
    CoordinatorRecord record{.round = Int(), .attempts = Int(), .is_granted = Bool()};
    record.has_finished = Bool();
    record.has_lost = Bool();
    if (Bool()) record.cause = TheCause();
    if (Bool()) record.outcome = {.rank = Int(), .cause = Text(), .restarts = Bool()};
    record.outcome.attempt = Int();
    record.outcome.cause_node = Text();
    record.outcome.earlier_failures = {{Big(), Text(), Int(), Int(), Int()}};
    record.history = {Int(), Int()};
    record.causes = {.rows = record.outcome.earlier_failures, .replaced = {{Big(), Int()}}};
    for (auto n = random_() % 4; n > 0; --n) {
      record.assignments.push_back({Big(), Int(), Text(), Int(), Int()});
    }
    if (Bool()) record.verdict = Verdict{Int(), Text()};
    return record;
  }

 private:
  std::mt19937_64 random_;
};

TEST(ControlCodecTest, EveryMessageSurvivesEncodingAndDecoding) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Contents contents(seed);
    for (const MemberMessage& message : contents.MemberMessages()) {
      auto read = DecodeMemberMessage(Encode(message));
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(*read, message);
    }
    for (const CoordinatorMessage& message : contents.CoordinatorMessages()) {
      auto read = DecodeCoordinatorMessage(Encode(message));
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(*read, message);
    }
    CoordinatorRecord record = contents.Record();
    auto read = DecodeCoordinatorRecord(Encode(record));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, record);
  }
}

TEST(ControlCodecTest, GarbageIsAnError) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (auto n = random() % 40; n > 0; --n) bytes += static_cast<char>(random());
    EXPECT_FALSE(DecodeMemberMessage(bytes));
    EXPECT_FALSE(DecodeCoordinatorMessage(bytes));
    EXPECT_FALSE(DecodeCoordinatorRecord(bytes));
  }
}

TEST(ControlCodecTest, ADamagedMessageNeverDoesHarm) {
  std::mt19937 random(2);
  for (const MemberMessage& message : Contents(3).MemberMessages()) {
    std::string whole = Encode(message);
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_FALSE(DecodeMemberMessage(whole.substr(0, length)));
    }
    for (int i = 0; i < 500; ++i) {
      std::string bytes = whole;
      bytes[random() % bytes.size()] = static_cast<char>(random());
      auto read = DecodeMemberMessage(bytes);
      EXPECT_TRUE(read || read.error().code == ErrorCode::kProtocol);
    }
  }
}

TEST(ControlCodecTest, WrongAndMissingFieldsAreNamed) {
  auto error = [](const Json& json) {
    auto read = DecodeMemberMessage(Cbor(json));
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(error({{"kind", "done"}}), "done: want a value as \"round\"");
  EXPECT_EQ(error({{"kind", "done"}, {"round", "one"}}),
            "done: want a number in its range as \"round\"");
  EXPECT_EQ(error({{"kind", "done"}, {"round", 1.5}}),
            "done: want a number in its range as \"round\"");
  EXPECT_EQ(error({{"kind", "done"}, {"round", int64_t{1} << 31}}),
            "done: want a number in its range as \"round\"");
  EXPECT_EQ(error({{"kind", "prepared"}, {"round", 1}, {"store_port", 65'536}}),
            "prepared: want a number in its range as \"store_port\"");
  EXPECT_EQ(error({{"kind", "beat"}, {"number", -1}}),
            "beat: want a number in its range as \"number\"");
  EXPECT_EQ(error({{"kind", "leave"}, {"why", 1}}), "leave: want a text as \"why\"");
  EXPECT_EQ(error({{"kind", "close"}, {"cause", 1}}), "close: want a map as \"message\"");
  EXPECT_EQ(error({{"kind", "none"}}), "a message of an unknown kind");
  EXPECT_EQ(error({{"kind", 1}}), "a message without a kind");
  EXPECT_EQ(error(Json::array()), "a message that is not a CBOR map");
}

TEST(ControlCodecTest, TextsOfPeersDoNotControlTheTerminal) {
  auto read = DecodeMemberMessage(Cbor({{"kind", "leave"}, {"why", "a\nrankrun: b\x1b[2J\xff"}}));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, MemberMessage(Leave{"a\\nrankrun: b\\x1b[2J\\xff"}));
  read = DecodeMemberMessage(Cbor({{"kind", "report"}, {"attempt", 1}, {"record", "a\n\xff"}}));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, MemberMessage(Report{1, "a\n\xff"}));
}

TEST(ControlCodecTest, TextsHaveALimitThatTheSenderKeeps) {
  std::string longest(4096, 'x');
  auto read = DecodeMemberMessage(Encode(MemberMessage(Leave{longest + "y"})));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, MemberMessage(Leave{longest}));
  read = DecodeMemberMessage(Cbor({{"kind", "leave"}, {"why", longest + "y"}}));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "leave: want at most 4096 bytes as \"why\"");
}

TEST(ControlCodecTest, ListsHaveALimit) {
  constexpr size_t kMax = 65'536;
  auto read = DecodeMemberMessage(Encode(MemberMessage(Beat{1, std::vector<int>(kMax)})));
  EXPECT_TRUE(read) << read.error().message;
  read = DecodeMemberMessage(Encode(MemberMessage(Beat{1, std::vector<int>(kMax + 1)})));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "beat: want at most 65536 entries as \"unfinished\"");
}

TEST(ControlCodecTest, UnknownFieldsAreIgnored) {
  auto read = DecodeMemberMessage(Cbor({{"kind", "done"}, {"round", 3}, {"colour", "red"}}));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, MemberMessage(Done{3}));
}

TEST(ControlCodecTest, NeitherDepthNorAHugeLengthDoesHarm) {
  std::string deep(1 << 20, '\x81');  // arrays in arrays
  EXPECT_FALSE(DecodeMemberMessage(deep));
  std::string endless(1 << 20, '\xbf');  // maps without a length
  EXPECT_FALSE(DecodeMemberMessage(endless));
  EXPECT_FALSE(DecodeMemberMessage("\x9b\xff\xff\xff\xff\xff\xff\xff\xfe"));
  EXPECT_FALSE(DecodeMemberMessage("\xbb\x7f\xff\xff\xff\xff\xff\xff\xff"));
  EXPECT_FALSE(DecodeMemberMessage("\x7b\x7f\xff\xff\xff\xff\xff\xff\xff"));
}

}  // namespace
}  // namespace rankrun::agent
