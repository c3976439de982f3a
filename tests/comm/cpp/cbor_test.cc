#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include <rankrun/cbor.h>

namespace rankrun {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

Object Bytes(std::initializer_list<int> values) {
  Object object;
  for (int value : values) object.push_back(static_cast<std::byte>(value));
  return object;
}

std::string ErrorOf(const Object& object, std::optional<int> from_rank = {}) try {
  return "no error: " + FromCbor<json>(object, from_rank).dump();
} catch (const DistCodecError& error) {
  return error.what();
}

Object ArraysWithinEachOther(size_t depth) {
  Object object(depth, std::byte{0x81});
  object.push_back(std::byte{0});
  return object;
}

TEST(CborTest, ValuesAreTheBytesThatOthersRead) {
  EXPECT_EQ(ToCbor(json("foo")), Bytes({0x63, 0x66, 0x6f, 0x6f}));
  EXPECT_EQ(ToCbor(json(12)), Bytes({0x0c}));
  EXPECT_EQ(FromCbor<json>(Bytes({0x63, 0x66, 0x6f, 0x6f})), "foo");
}

TEST(CborTest, ValuesComeBackAsTheyWere) {
  json value = {{"name", "worker-1"},  {"speed", 1.5},       {"parts", {1, -2, 3}},
                {"deep", {{"a", {}}}}, {"nothing", nullptr}, {"yes", true}};
  EXPECT_EQ(FromCbor<json>(ToCbor(value)), value);
}

TEST(CborTest, InvalidCborIsReportedWithPositionAndSender) {
  EXPECT_THAT(ErrorOf(Bytes({0x63, 0x66}), 3),
              StartsWith("object of rank 3 is no CBOR that can be read: at byte 3: "));
  EXPECT_THAT(ErrorOf(Bytes({0xff})), StartsWith("object is no CBOR that can be read: at byte 1"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("unexpected end of input"));
  EXPECT_THAT(ErrorOf(Bytes({0x0c, 0x0c})), HasSubstr("at byte 2"));  // one value too many
  EXPECT_THAT(ErrorOf(Bytes({0xa1, 0x01, 0x02})),
              HasSubstr("at byte 2"));  // a key that is not a text
}

TEST(CborTest, ALengthThatHasNotComeTakesNoMemory) {
  Object huge = Bytes({0x5b, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  EXPECT_THAT(ErrorOf(huge), HasSubstr("unexpected end of input"));
  Object many = Bytes({0x9b, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  EXPECT_THAT(ErrorOf(many), HasSubstr("unexpected end of input"));
  Object more = Bytes({0xbb, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  EXPECT_THAT(ErrorOf(more), HasSubstr("excessive object size"));
}

TEST(CborTest, ArraysNestSoDeepAndNoDeeper) {
  EXPECT_THAT(ErrorOf(ArraysWithinEachOther(64)), StartsWith("no error: [[["));
  EXPECT_THAT(ErrorOf(ArraysWithinEachOther(65)), HasSubstr("more than 64 arrays and maps"));
  EXPECT_THAT(ErrorOf(ArraysWithinEachOther(10'000'000)), HasSubstr("more than 64"));
}

TEST(CborTest, PartsOfAStringNestNoDeeperEither) {
  EXPECT_THAT(ErrorOf(Object(10'000'000, std::byte{0x7f})), HasSubstr("more than 64"));
  EXPECT_THAT(ErrorOf(Bytes({0x7f, 0x61, 0x61, 0x61, 0x62, 0xff})), HasSubstr("no error: \"ab\""));
}

}  // namespace
}  // namespace rankrun
