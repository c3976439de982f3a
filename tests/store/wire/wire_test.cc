#include "store/wire/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/store/wire/wire_decode.h"

namespace rankrun::store {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string AfterValidate(std::string_view hex) { return EncodeValidate() + FromHex(hex); }

const std::vector<EncodedRequest>& RequestVectors() {
  static const std::vector<EncodedRequest> vectors = {
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
      {"07", GetNumKeysRequest{}},
      {"09 02 00 00 00 00 00 00 00 2f 6b 02 00 00 00 00 00 00 00 7a 7a", AppendRequest{"/k", "zz"}},
      {"0a 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 02 00 00 00 00 00 00 00 2f 62",
       MultiGetRequest{{"/a", "/b"}}},
      {"0b 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 01 00 00 00 00 00 00 00 31"
       "02 00 00 00 00 00 00 00 2f 62 02 00 00 00 00 00 00 00 32 32",
       MultiSetRequest{{{"/a", "1"}, {"/b", "22"}}}},
      {"0e 02 00 00 00 00 00 00 00 2f 71 01 00 00 00 00 00 00 00 6d", QueuePushRequest{"/q", "m"}},
      {"0f 02 00 00 00 00 00 00 00 2f 71", QueuePopRequest{"/q"}},
      {"10 02 00 00 00 00 00 00 00 2f 71", QueueLenRequest{"/q"}},
      {"11", ListKeysRequest{}},
      {"12 02 00 00 00 00 00 00 00 2f 62 03 00 00 00 00 00 00 00", BarrierRequest{"/b", 3}},
  };
  return vectors;
}

TEST(WireTest, ValidateIsTheMagic) { EXPECT_EQ(EncodeValidate(), FromHex("00 ce f7 85 3c")); }

TEST(WireTest, RequestsAreEncodedAsInTheProtocolsVectors) {
  for (const EncodedRequest& vector : RequestVectors()) {
    EXPECT_EQ(EncodeRequest(vector.request), FromHex(vector.hex)) << vector.hex;
  }
}

TEST(WireTest, TheProtocolsVectorsDecodeWhereverTheyAreCut) {
  std::string all = EncodeValidate();
  std::vector<Request> expected;
  for (const EncodedRequest& vector : RequestVectors()) {
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
  for (const EncodedRequest& vector : RequestVectors()) {
    std::string all = AfterValidate(vector.hex);
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
      {ValuesReply{{"1", "22"}}, "01 00 00 00 00 00 00 00 31 02 00 00 00 00 00 00 00 32 32"},
      {ValuesReply{}, ""},
      {PopReply{1, "m"}, "01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 6d"},
      {PopReply{0, std::nullopt}, "00 00 00 00 00 00 00 00"},
      {KeysReply{{"init/", "/n"}},
       "02 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 69 6e 69 74 2f"
       "02 00 00 00 00 00 00 00 2f 6e"},
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

TEST(WireTest, ValidateComesOnce) {
  EXPECT_THAT(Decode(AfterValidate("00 ce f7 85 3c"), 99).error,
              HasSubstr("VALIDATE came a second time"));
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
  WireLimits limits{.key_bytes = 4, .value_bytes = 6, .keys_per_request = 2};
  const Request allowed[] = {SetRequest{"1234", "123456"}, CheckRequest{{"1234", ""}},
                             CompareSetRequest{"1234", "123456", "123456"},
                             MultiSetRequest{{{"1234", "123456"}, {"", ""}}}};
  for (const Request& request : allowed) {
    EXPECT_EQ(Decode(EncodeValidate() + EncodeRequest(request), 3, limits).error, "");
  }
  const std::pair<Request, const char*> refused[] = {
      {GetRequest{"12345"}, "GET with a key of 5 bytes is over the limit of 4"},
      {CheckRequest{{"12345"}}, "CHECK with a key of 5 bytes is over the limit of 4"},
      {SetRequest{"/1", "1234567"},
       "SET of key \"1\" with a value of 7 bytes is over the limit of 6"},
      {CompareSetRequest{"1", "", "1234567"},
       "COMPARE_SET of key \"1\" with a value of 7 bytes is over the limit of 6"},
      {WaitRequest{{"", "", ""}}, "WAIT of 3 keys is over the limit of 2"},
      {MultiSetRequest{{{"", ""}, {"", ""}, {"", ""}}},
       "MULTI_SET of 3 keys is over the limit of 2"},
      {MultiSetRequest{{{"1", ""}, {"12345", ""}}},
       "MULTI_SET with a key of 5 bytes is over the limit of 4"},
      {MultiSetRequest{{{"12345", ""}}}, "MULTI_SET with a key of 5 bytes is over the limit of 4"},
      {MultiSetRequest{{{"1", "1234567"}}},
       "MULTI_SET of key \"1\" with a value of 7 bytes is over the limit of 6"},
  };
  for (const auto& [request, error] : refused) {
    EXPECT_EQ(Decode(EncodeValidate() + EncodeRequest(request), 3, limits).error, error);
  }
}

TEST(WireTest, TheDefaultLimitsAreThoseOfTheDocument) {
  std::string key(8192, 'k');
  EXPECT_EQ(Decode(EncodeValidate() + EncodeRequest(GetRequest{key}), 4096).error, "");
  key += 'k';
  EXPECT_NE(Decode(EncodeValidate() + EncodeRequest(GetRequest{key}), 4096).error, "");
  EXPECT_EQ(Decode(AfterValidate("06 00 00 02 00 00 00 00 00"), 99).error, "");
  EXPECT_NE(Decode(AfterValidate("06 01 00 02 00 00 00 00 00"), 99).error, "");
  std::string set_k = "01 01 00 00 00 00 00 00 00 6b ";
  EXPECT_EQ(Decode(AfterValidate(set_k + "00 00 00 04 00 00 00 00"), 99).error, "");
  EXPECT_NE(Decode(AfterValidate(set_k + "01 00 00 04 00 00 00 00"), 99).error, "");
}

// Reserving either size would throw.
TEST(WireTest, AnAnnouncedLengthTakesNoMemory) {
  constexpr size_t kBeyondReason = size_t{1} << 62;
  WireLimits limits{kBeyondReason, kBeyondReason, kBeyondReason, 2 * kBeyondReason};
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
  const std::string value(5000, 'v');
  std::string all = EncodeValidate() + EncodeRequest(SetRequest{"k", value});
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
    switch (Below(18)) {
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
      case 8:
        return GetNumKeysRequest{};
      case 9:
        return ListKeysRequest{};
      case 10:
        return AppendRequest{Bytes(20), Bytes(2000)};
      case 11:
        return MultiGetRequest{Keys()};
      case 12:
        return MultiSetRequest{{{Bytes(20), Bytes(200)}, {Bytes(20), Bytes(200)}}};
      case 13:
        return QueuePushRequest{Bytes(20), Bytes(200)};
      case 14:
        return QueuePopRequest{Bytes(20)};
      case 15:
        return QueueLenRequest{Bytes(20)};
      case 16:
        return BarrierRequest{Bytes(20), static_cast<int64_t>(Below(SIZE_MAX))};
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

TEST(WireTest, RandomRequestsSurviveEncodingAndDecoding) {
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

// For the sanitizers: any input ends in requests or in an error.
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
