#include "store/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <random>

namespace rankrun::store {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "00 ce f7": the way the vectors of docs/store-protocol.md are written.
std::string FromHex(std::string_view hex) {
  std::string bytes;
  int digits = 0;
  unsigned value = 0;
  for (char c : hex) {
    if (c == ' ') continue;
    unsigned digit = std::isdigit(static_cast<unsigned char>(c)) != 0
                         ? static_cast<unsigned>(c - '0')
                         : static_cast<unsigned>(c - 'a') + 10;
    value = value * 16 + digit;
    if (++digits % 2 == 0) {
      bytes += static_cast<char>(value);
      value = 0;
    }
  }
  return bytes;
}

struct Decoded {
  std::vector<Request> requests;
  std::string error;  // empty: none
};

// Decodes `bytes` as they would come in reads of `piece` bytes.
Decoded Decode(std::string_view bytes, size_t piece, const WireLimits& limits = {}) {
  RequestDecoder decoder(limits);
  Decoded decoded;
  while (!bytes.empty()) {
    std::string_view read = bytes.substr(0, piece);
    bytes.remove_prefix(read.size());
    while (true) {
      auto next = decoder.Next(read);
      if (!next) {
        EXPECT_EQ(next.error().code, ErrorCode::kProtocol);
        decoded.error = next.error().message;
        return decoded;
      }
      if (!*next) break;
      decoded.requests.push_back(std::move(**next));
    }
    EXPECT_TRUE(read.empty());
  }
  return decoded;
}

std::string AfterValidate(std::string_view hex) { return EncodeValidate() + FromHex(hex); }

struct Vector {
  const char* hex;
  Request request;
};

const std::vector<Vector>& RequestVectors() {
  static const std::vector<Vector> vectors = {
      {"0d 39 30 00 00", PingRequest{12345}},
      {"01 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 76 61 6c",
       SetRequest{"/k", "val"}},
      {"02 02 00 00 00 00 00 00 00 2f 63 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 78",
       CompareSetRequest{"/c", "", "x"}},
      {"03 02 00 00 00 00 00 00 00 2f 6b", GetRequest{"/k"}},
      {"04 02 00 00 00 00 00 00 00 2f 6e 05 00 00 00 00 00 00 00", AddRequest{"/n", 5}},
      {"04 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00", AddRequest{"init/", 1}},
      {"05 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6e 02 00 00 00 00 00 00 00 2f 7a",
       CheckRequest{{"/n", "/z"}}},
      {"06 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6e", WaitRequest{{"/n"}}},
      {"08 02 00 00 00 00 00 00 00 2f 6b", DeleteKeyRequest{"/k"}},
      {"0c", CancelWaitRequest{}},
  };
  return vectors;
}

TEST(WireTest, ValidateIsTheMagic) { EXPECT_EQ(EncodeValidate(), FromHex("00 ce f7 85 3c")); }

TEST(WireTest, RequestsAreEncodedAsInTheProtocolsVectors) {
  for (const Vector& vector : RequestVectors()) {
    EXPECT_EQ(EncodeRequest(vector.request), FromHex(vector.hex)) << vector.hex;
  }
}

TEST(WireTest, TheProtocolsVectorsDecodeWhereverTheyAreCut) {
  std::string all = EncodeValidate();
  std::vector<Request> expected;
  for (const Vector& vector : RequestVectors()) {
    all += FromHex(vector.hex);
    expected.push_back(vector.request);
  }
  for (size_t piece = 1; piece <= all.size(); ++piece) {
    Decoded decoded = Decode(all, piece);
    EXPECT_EQ(decoded.error, "");
    EXPECT_TRUE(decoded.requests == expected) << "in pieces of " << piece;
  }
}

TEST(WireTest, EveryRequestDecodesWhenCutInTwoAnywhere) {
  for (const Vector& vector : RequestVectors()) {
    const std::string all = AfterValidate(vector.hex);
    for (size_t cut = 0; cut <= all.size(); ++cut) {
      RequestDecoder decoder(WireLimits{});
      std::string_view head = std::string_view(all).substr(0, cut);
      std::string_view tail = std::string_view(all).substr(cut);
      auto first = decoder.Next(head);
      ASSERT_TRUE(first);
      if (cut < all.size()) {
        ASSERT_FALSE(*first) << vector.hex << " cut at " << cut;
        first = decoder.Next(tail);
        ASSERT_TRUE(first);
      }
      ASSERT_TRUE(*first && **first == vector.request) << vector.hex << " cut at " << cut;
    }
  }
}

TEST(WireTest, RepliesAreEncodedAsInTheProtocolsVectors) {
  const std::pair<Reply, const char*> vectors[] = {
      {PingReply{12345}, "39 30 00 00"},
      {ValueReply{"val"}, "03 00 00 00 00 00 00 00 76 61 6c"},
      {ValueReply{""}, "00 00 00 00 00 00 00 00"},
      {NumberReply{5}, "05 00 00 00 00 00 00 00"},
      {NumberReply{-2}, "fe ff ff ff ff ff ff ff"},
      {CheckReply::kReady, "00"},
      {CheckReply::kNotReady, "01"},
      {WaitReply::kStopWaiting, "00"},
      {WaitReply::kWaitCanceled, "01"},
  };
  std::string all;
  std::string expected;
  for (const auto& [reply, hex] : vectors) {
    AppendReply(all, reply);
    expected += FromHex(hex);
    EXPECT_EQ(all, expected) << hex;
  }
}

TEST(WireTest, ValidateAloneIsNoRequest) {
  Decoded decoded = Decode(EncodeValidate(), 1);
  EXPECT_THAT(decoded.requests, IsEmpty());
  EXPECT_EQ(decoded.error, "");
}

TEST(WireTest, NothingComesBeforeValidate) {
  EXPECT_THAT(Decode(FromHex("0d 39 30 00 00"), 99).error,
              AllOf(HasSubstr("operation PING"), HasSubstr("before VALIDATE")));
  // The magic before each request: a short-lived version of PyTorch.
  EXPECT_THAT(Decode(FromHex("ce f7 85 3c"), 99).error,
              AllOf(HasSubstr("operation 206"), HasSubstr("before VALIDATE")));
}

TEST(WireTest, ClientsOfOldPyTorchAreToldApart) {
  // PyTorch 1.13 begins with ADD "init/" 1 or with SET, in its own numbers.
  EXPECT_THAT(
      Decode(FromHex("03 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00"), 99)
          .error,
      HasSubstr("PyTorch before 2.3"));
  EXPECT_THAT(
      Decode(FromHex("00 02 00 00 00 00 00 00 00 2f 6b"), 99).error,
      AllOf(HasSubstr("VALIDATE with 0x2 instead of 0x3c85f7ce"), HasSubstr("PyTorch before 2.3")));
}

TEST(WireTest, ValidateComesOnce) {
  EXPECT_THAT(Decode(AfterValidate("00 ce f7 85 3c"), 99).error,
              HasSubstr("VALIDATE came a second time"));
}

TEST(WireTest, OperationsThatAreNotSupportedAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"07", "GETNUMKEYS"}, {"09", "APPEND"},     {"0a", "MULTI_GET"},
      {"0b", "MULTI_SET"},  {"0e", "QUEUE_PUSH"}, {"0f", "QUEUE_POP"},
      {"10", "QUEUE_LEN"},  {"11", "LIST_KEYS"},  {"12", "BARRIER"},
  };
  for (const auto& [hex, name] : cases) {
    EXPECT_EQ(Decode(AfterValidate(hex), 99).error,
              "operation " + std::string(name) + " is not supported");
  }
}

TEST(WireTest, OperationsWithoutANameAreNumbered) {
  EXPECT_EQ(Decode(AfterValidate("13"), 99).error, "operation 19 is unknown");
  EXPECT_EQ(Decode(AfterValidate("ff"), 99).error, "operation 255 is unknown");
}

TEST(WireTest, RequestsBeforeAnErrorAreStillDecoded) {
  Decoded decoded = Decode(AfterValidate("0c 13 0c"), 99);
  EXPECT_TRUE(decoded.requests == std::vector<Request>{CancelWaitRequest{}});
  EXPECT_NE(decoded.error, "");
}

TEST(WireTest, LimitsAreInclusive) {
  const WireLimits limits{.key_bytes = 4, .value_bytes = 6, .keys_per_request = 2};
  const Request allowed[] = {SetRequest{"1234", "123456"}, CheckRequest{{"1234", ""}},
                             CompareSetRequest{"1234", "123456", "123456"}};
  for (const Request& request : allowed) {
    EXPECT_EQ(Decode(EncodeValidate() + EncodeRequest(request), 3, limits).error, "");
  }
  const std::pair<Request, const char*> refused[] = {
      {GetRequest{"12345"}, "GET with a key of 5 bytes is over the limit of 4"},
      {CheckRequest{{"12345"}}, "CHECK with a key of 5 bytes is over the limit of 4"},
      {SetRequest{"1", "1234567"}, "SET with a value of 7 bytes is over the limit of 6"},
      {CompareSetRequest{"1", "", "1234567"},
       "COMPARE_SET with a value of 7 bytes is over the limit of 6"},
      {WaitRequest{{"", "", ""}}, "WAIT of 3 keys is over the limit of 2"},
  };
  for (const auto& [request, error] : refused) {
    EXPECT_EQ(Decode(EncodeValidate() + EncodeRequest(request), 3, limits).error, error);
  }
}

TEST(WireTest, TheDefaultLimitsAreThoseOfTheDocument) {
  EXPECT_EQ(
      Decode(EncodeValidate() + EncodeRequest(GetRequest{std::string(8192, 'k')}), 4096).error, "");
  EXPECT_NE(
      Decode(EncodeValidate() + EncodeRequest(GetRequest{std::string(8193, 'k')}), 4096).error, "");
  EXPECT_EQ(Decode(AfterValidate("06 00 00 02 00 00 00 00 00"), 99).error, "");
  EXPECT_NE(Decode(AfterValidate("06 01 00 02 00 00 00 00 00"), 99).error, "");
  const std::string set_k = "01 01 00 00 00 00 00 00 00 6b ";
  EXPECT_EQ(Decode(AfterValidate(set_k + "00 00 00 04 00 00 00 00"), 99).error, "");
  EXPECT_NE(Decode(AfterValidate(set_k + "01 00 00 04 00 00 00 00"), 99).error, "");
}

// To reserve either would throw.
TEST(WireTest, AnAnnouncedLengthTakesNoMemory) {
  constexpr size_t kBeyondReason = size_t{1} << 62;
  const WireLimits limits{kBeyondReason, kBeyondReason, kBeyondReason};
  RequestDecoder value_decoder(limits);
  std::string set = AfterValidate("01 01 00 00 00 00 00 00 00 6b 00 00 00 00 00 00 00 40 78");
  std::string_view bytes = set;
  auto next = value_decoder.Next(bytes);
  ASSERT_TRUE(next);
  EXPECT_FALSE(*next);
  EXPECT_LT(value_decoder.held_bytes(), 1000u);

  RequestDecoder keys_decoder(limits);
  std::string wait = AfterValidate("06 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00 00");
  bytes = wait;
  next = keys_decoder.Next(bytes);
  ASSERT_TRUE(next);
  EXPECT_FALSE(*next);
  EXPECT_LT(keys_decoder.held_bytes(), 1000u);
}

TEST(WireTest, HeldBytesAreThoseOfTheUnfinishedRequest) {
  RequestDecoder decoder(WireLimits{});
  std::string all = EncodeValidate() + EncodeRequest(SetRequest{"k", std::string(5000, 'v')});
  std::string_view bytes = std::string_view(all).substr(0, all.size() - 1);
  ASSERT_TRUE(decoder.Next(bytes));
  EXPECT_GE(decoder.held_bytes(), 5000u);
  bytes = std::string_view(all).substr(all.size() - 1);
  ASSERT_TRUE(decoder.Next(bytes));
  EXPECT_EQ(decoder.held_bytes(), 0u);
}

class RandomRequests {
 public:
  explicit RandomRequests(unsigned seed) : random_(seed) {}

  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }
  Request Next() {
    switch (Below(9)) {
      case 0:
        return SetRequest{Bytes(20), Bytes(2000)};
      case 1:
        return CompareSetRequest{Bytes(20), Bytes(200), Bytes(200)};
      case 2:
        return GetRequest{Bytes(20)};
      case 3:
        return AddRequest{Bytes(20), static_cast<int64_t>(Below(SIZE_MAX))};
      case 4:
        return CheckRequest{Keys()};
      case 5:
        return WaitRequest{Keys()};
      case 6:
        return DeleteKeyRequest{Bytes(20)};
      case 7:
        return CancelWaitRequest{};
      default:
        return PingRequest{static_cast<uint32_t>(Below(UINT32_MAX))};
    }
  }
  std::string Bytes(size_t bound) {
    std::string bytes(Below(bound), '\0');
    for (char& byte : bytes) byte = static_cast<char>(Below(256));
    return bytes;
  }

 private:
  std::vector<std::string> Keys() {
    std::vector<std::string> keys(Below(5));
    for (std::string& key : keys) key = Bytes(20);
    return keys;
  }
  std::mt19937 random_;
};

TEST(WireTest, RandomRequestsSurviveTheWay) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRequests random(seed);
    std::vector<Request> sent;
    std::string bytes = EncodeValidate();
    for (int i = 0; i < 50; ++i) {
      sent.push_back(random.Next());
      bytes += EncodeRequest(sent.back());
    }
    Decoded decoded = Decode(bytes, 1 + random.Below(100));
    EXPECT_EQ(decoded.error, "");
    EXPECT_TRUE(decoded.requests == sent);
  }
}

// For the sanitizers: whatever comes, it ends in requests or in an error.
TEST(WireTest, RandomBytesDoNoHarm) {
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRequests random(seed);
    std::string bytes = EncodeValidate() + EncodeRequest(random.Next());
    for (size_t changes = random.Below(4); changes > 0; --changes) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    }
    Decode(bytes + random.Bytes(50), 1 + random.Below(30));
  }
}

}  // namespace
}  // namespace rankrun::store
