#include "launcher/settings/rdzv_conf.h"

#include <gtest/gtest.h>

namespace rankrun::launcher {
namespace {

using Values = std::map<std::string, std::string, std::less<>>;

RdzvConf Parse(std::string_view text) {
  auto conf = RdzvConf::Parse(text);
  EXPECT_TRUE(conf) << conf.error().message;
  return conf ? *conf : RdzvConf();
}

TEST(RdzvConfTest, ValuesMayBeAnyText) {
  EXPECT_EQ(Parse("").all(), Values{});
  EXPECT_EQ(Parse(" a = b ,c=d=e").all(), (Values{{"a", "b"}, {"c", "d=e"}}));
  EXPECT_EQ(Parse("a=1,a=2").all(), (Values{{"a", "2"}}));
  EXPECT_EQ(Parse("'join_timeout=5,timeout=5'").all(),
            (Values{{"'join_timeout", "5"}, {"timeout", "5'"}}));
}

TEST(RdzvConfTest, ANumberIsCheckedWhenItIsAskedFor) {
  RdzvConf conf = Parse("a=5,b=x,c=0,d=99999999999");
  EXPECT_EQ(*conf.Number("a", 1), 5);
  EXPECT_EQ(*conf.Number("z", 1), std::nullopt);
  EXPECT_EQ(*conf.Number("c", 0), 0);
  EXPECT_EQ(conf.Number("b", 1).error().message,
            "want a whole number of at least 1 for b, got \"x\"");
  EXPECT_EQ(conf.Number("c", 1).error().message,
            "want a whole number of at least 1 for c, got \"0\"");
  EXPECT_FALSE(conf.Number("d", 1));
}

TEST(RdzvConfTest, ASwitchTakesTheValuesOfTorchrun) {
  for (const char* on : {"1", "true", "T", "Yes", "y"}) {
    EXPECT_EQ(*Parse(std::string("a=") + on).Switch("a"), true) << on;
  }
  for (const char* off : {"0", "False", "f", "no", "N"}) {
    EXPECT_EQ(*Parse(std::string("a=") + off).Switch("a"), false) << off;
  }
  EXPECT_EQ(*Parse("").Switch("a"), std::nullopt);
  EXPECT_EQ(Parse("a=on").Switch("a").error().message, "want true or false for a, got \"on\"");
}

}  // namespace
}  // namespace rankrun::launcher
