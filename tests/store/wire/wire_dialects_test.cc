#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/wire/wire_decode.h"

// Detection of the dialect by the first bytes, and the dialect of old PyTorch.

namespace rankrun::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Requests of PyTorch 1.13.1, as captured.
const std::vector<EncodedRequest>& OldRequests() {
  static const std::vector<EncodedRequest> captured = {
      {"03 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00", AddRequest{"init/", 1}},
      {"00 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 76 61 6c",
       SetRequest{"/k", "val"}},
      {"05 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b", WaitRequest{{"/k"}}},
      {"02 02 00 00 00 00 00 00 00 2f 6b", GetRequest{"/k"}},
      {"03 02 00 00 00 00 00 00 00 2f 6e f9 ff ff ff ff ff ff ff", AddRequest{"/n", -7}},
      {"01 03 00 00 00 00 00 00 00 2f 63 73 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 78",
       CompareSetRequest{"/cs", "", "x"}},
      {"04 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6e", CheckRequest{{"/n"}}},
      {"06", GetNumKeysRequest{}},
      {"08 02 00 00 00 00 00 00 00 2f 6b", DeleteKeyRequest{"/k"}},
      {"07 02 00 00 00 00 00 00 00 2f 6b", WatchKeyRequest{"/k"}},
  };
  return captured;
}

// Each request may be the first of its connection.
TEST(WireDialectsTest, OldRequestsAreDetectedByTheirFirstBytesWhereverTheyAreCut) {
  for (const EncodedRequest& captured : OldRequests()) {
    std::string all = FromHex(captured.hex);
    for (size_t cut = 1; cut <= all.size(); ++cut) {
      RequestDecoder decoder(WireLimits{});
      std::string_view head = std::string_view(all).substr(0, cut);
      std::string_view tail = std::string_view(all).substr(cut);
      auto next = decoder.Next(head);
      ASSERT_TRUE(next) << next.error().message;
      if (!tail.empty()) {
        ASSERT_FALSE(*next) << captured.hex << " cut at " << cut;
        next = decoder.Next(tail);
        ASSERT_TRUE(next) << next.error().message;
      }
      ASSERT_TRUE(*next && **next == captured.request) << captured.hex << " cut at " << cut;
      EXPECT_FALSE(decoder.cancels_waits());
    }
  }
}

TEST(WireDialectsTest, AnOldConnectionDecodesInPiecesOfAnySize) {
  for (size_t first = 0; first < OldRequests().size(); ++first) {
    std::string all = FromHex(OldRequests()[first].hex);
    std::vector<Request> expected = {OldRequests()[first].request};
    for (const EncodedRequest& captured : OldRequests()) {
      all += FromHex(captured.hex);
      expected.push_back(captured.request);
    }
    for (size_t piece = 1; piece <= all.size(); ++piece) {
      Decoded decoded = Decode(all, piece);
      EXPECT_EQ(decoded.error, "");
      EXPECT_TRUE(decoded.requests == expected) << "in pieces of " << piece;
    }
  }
}

TEST(WireDialectsTest, AnOldSetOfTheEmptyKeyIsNoValidate) {
  Decoded decoded = Decode(FromHex("00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"), 1);
  EXPECT_TRUE(decoded.requests == std::vector<Request>({SetRequest{"", ""}})) << decoded.error;
}

TEST(WireDialectsTest, AConnectionThatValidatesIsOfTheCurrentDialect) {
  RequestDecoder decoder(WireLimits{});
  std::string all = EncodeValidate() + EncodeRequest(GetNumKeysRequest{});
  std::string_view bytes = all;
  auto next = decoder.Next(bytes);
  ASSERT_TRUE(next && *next);
  EXPECT_TRUE(**next == Request(GetNumKeysRequest{}));
  EXPECT_TRUE(decoder.cancels_waits());
}

TEST(WireDialectsTest, AWrongMagicIsRefusedAsSoonAsItArrives) {
  EXPECT_THAT(Decode(FromHex("00 ce f7 85 3d"), 1).error,
              HasSubstr("VALIDATE with 0x3d85f7ce instead of 0x3c85f7ce"));
}

TEST(WireDialectsTest, AnOldKeyMayBeAsLongAsAnother) {
  const std::string key(8192, 'k');
  std::string all =
      FromHex("00 00 20 00 00 00 00 00 00") + key + FromHex("00 00 00 00 00 00 00 00");
  EXPECT_TRUE(Decode(all, 100).requests == std::vector<Request>({SetRequest{key, ""}}));
  EXPECT_NE(Decode(FromHex("00 01 20 00 00"), 100).error, "");
  // The upper half of the length counts as well.
  EXPECT_THAT(Decode(FromHex("00 02 00 00 00 01 00 00 00"), 100).error,
              HasSubstr("SET with a key of 4294967298 bytes"));
}

TEST(WireDialectsTest, TheMagicBeforeEachRequestIsNotSupported) {
  EXPECT_THAT(Decode(FromHex("ce f7 85 3c 01"), 1).error,
              AllOf(HasSubstr("PyTorch of about 2.2"), HasSubstr("not supported")));
}

TEST(WireDialectsTest, NothingElseComesBeforeValidate) {
  EXPECT_THAT(Decode(FromHex("0d 39 30 00 00"), 99).error,
              AllOf(HasSubstr("operation PING"), HasSubstr("before VALIDATE")));
  EXPECT_THAT(Decode("GET / HTTP/1.1\r\n", 99).error,
              AllOf(HasSubstr("operation 71"), HasSubstr("no store client")));
}

TEST(WireDialectsTest, OldConnectionsHaveTheOldOperationsOnly) {
  EXPECT_EQ(Decode(FromHex("06 09"), 99).error, "operation 9 is unknown");
  EXPECT_EQ(Decode(FromHex("06 0c"), 99).error, "operation 12 is unknown");
}

TEST(WireDialectsTest, AnOldSetAsSecondRequestIsNoValidate) {
  EXPECT_THAT(Decode(FromHex("06 00 ce f7 85 3c 00 00 00 00"), 1).error,
              HasSubstr("SET with a key of 1015412686 bytes"));
}

}  // namespace
}  // namespace rankrun::store
