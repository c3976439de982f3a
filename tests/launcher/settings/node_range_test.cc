#include "launcher/settings/node_range.h"

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

std::string ErrorOf(const Words& flags, const Variables& variables = {}) {
  auto range = ReadNodeRange(SettingsOf(flags, variables));
  if (range) return "accepted";
  EXPECT_EQ(range.error().code, ErrorCode::kInvalid);
  return range.error().message;
}

TEST(NodeRangeTest, ANumberIsBothEnds) {
  struct Row {
    const char* text;
    NodeRange range;
  };
  for (const Row& row : {Row{"1", {1, 1}}, Row{"1:1", {1, 1}}, Row{"2", {2, 2}}, Row{"1:4", {1, 4}},
                         Row{"1000000", {1'000'000, 1'000'000}}}) {
    auto range = ReadNodeRange(SettingsOf({"--nnodes", row.text}));
    ASSERT_TRUE(range) << range.error().message;
    EXPECT_EQ(*range, row.range) << row.text;
  }
  EXPECT_EQ(*ReadNodeRange(SettingsOf({})), (NodeRange{1, 1}));
}

TEST(NodeRangeTest, OtherTextsThanRangesAreRefused) {
  for (const char* bad : {"0", "-1", "2:1", "0:1", "0:4"}) {
    EXPECT_EQ(ErrorOf({"--nnodes", bad}),
              std::string("--nnodes: want at least 1, and MIN not above MAX, got \"") + bad + '"');
  }
  for (const char* bad : {"one", "1:", ":1", "1:1:1", "1.0", "1-2", " 1"}) {
    EXPECT_EQ(ErrorOf({"--nnodes", bad}),
              std::string("--nnodes: want N or MIN:MAX, got \"") + bad + '"');
  }
  EXPECT_EQ(ErrorOf({"--nnodes=1:1000001"}), "--nnodes: want at most 1000000, got \"1:1000001\"");
  EXPECT_EQ(ErrorOf({}, {{"PET_NNODES", "x"}}), "PET_NNODES: want N or MIN:MAX, got \"x\"");
}

}  // namespace
}  // namespace rankrun::launcher
