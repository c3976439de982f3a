#include "comm/mesh/layout.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <set>

namespace rankrun::comm::mesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Groups = std::vector<std::vector<int>>;
using Names = std::vector<std::string>;

Layout Of(std::vector<int> shape, Names names = {}) {
  auto layout = Layout::Make(std::move(shape), std::move(names));
  EXPECT_TRUE(layout) << layout.error().message;
  return *layout;
}

std::string ErrorOf(const Result<Layout>& layout) {
  if (layout) return "no error";
  EXPECT_EQ(layout.error().code, ErrorCode::kInvalid);
  return layout.error().message;
}

TEST(LayoutTest, M1_TwoDimensions) {
  Layout layout = Of({2, 4});
  EXPECT_EQ(layout.GroupsAlong(0), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(layout.GroupsAlong(1), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_THAT(*layout.CoordinateOf(rank), ElementsAre(rank / 4, rank % 4));
  }
  EXPECT_EQ(layout.CoordinateOf(8), std::nullopt);
}

TEST(LayoutTest, M2_OneDimension) {
  EXPECT_EQ(Of({8}).ranks(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Of({8}).GroupsAlong(0), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
}

TEST(LayoutTest, M3_NamedDimensions) {
  Layout layout = Of({2, 8}, {"dp", "tp"});
  EXPECT_EQ(layout.GroupsAlong(*layout.DimOf("dp")),
            (Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
  EXPECT_EQ(layout.GroupsAlong(*layout.DimOf("tp")),
            (Groups{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}));
}

// Each rank is in one group of each dimension, at its coordinate, and the members have
// its coordinates in the other dimensions.
TEST(LayoutTest, GroupsAreThoseOfTheCoordinates) {
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{
           {1}, {5}, {1, 1}, {3, 2}, {2, 3, 4}, {1, 4, 1, 2}, {2, 2, 2, 2, 2}}) {
    int size = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
    std::vector<int> ranks;
    for (int i = 0; i < size; ++i) ranks.push_back((i * 7 + 3) % (size * 11));
    if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size()) continue;
    Layout layout = *Layout::Make(shape, ranks, {});
    for (int dim = 0; dim < layout.dims(); ++dim) {
      std::map<int, int> seen;
      for (const std::vector<int>& group : layout.GroupsAlong(dim)) {
        ASSERT_EQ(group.size(), static_cast<size_t>(shape[static_cast<size_t>(dim)]));
        std::vector<int> expected = *layout.CoordinateOf(group.front());
        for (size_t i = 0; i < group.size(); ++i) {
          expected[static_cast<size_t>(dim)] = static_cast<int>(i);
          EXPECT_EQ(*layout.CoordinateOf(group[i]), expected);
          seen[group[i]] += 1;
        }
      }
      EXPECT_EQ(seen.size(), ranks.size());
    }
  }
}

TEST(LayoutTest, ASliceKeepsTheOrderOfTheDimensions) {
  Layout layout = Of({2, 2, 2}, {"dp", "pp", "cp"});
  for (int rank : {0, 1, 4, 5}) {
    EXPECT_EQ(layout.Slice({"dp", "cp"}, rank)->ranks(), (std::vector<int>{0, 1, 4, 5}));
  }
  for (int rank : {2, 3, 6, 7}) {
    Layout slice = *layout.Slice({"cp", "dp"}, rank);
    EXPECT_EQ(slice.ranks(), (std::vector<int>{2, 3, 6, 7}));
    EXPECT_EQ(slice.shape(), (std::vector<int>{2, 2}));
    EXPECT_EQ(slice.names(), (Names{"dp", "cp"}));
  }
  EXPECT_EQ(*layout.Slice({"dp", "pp", "cp"}, 3), layout);
}

TEST(LayoutTest, AFlatSliceHasOneDimension) {
  Layout layout = Of({2, 2, 2}, {"dp", "cp", "tp"});
  Layout flat = *layout.Slice({"dp", "cp"}, 0)->Flatten("dp_cp");
  EXPECT_EQ(flat.ranks(), (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(flat.names(), (Names{"dp_cp"}));
  EXPECT_EQ(layout.Slice({"dp", "cp"}, 7)->Flatten("dp_cp")->ranks(),
            (std::vector<int>{1, 3, 5, 7}));
}

TEST(LayoutTest, WrongMeshesAreRefused) {
  EXPECT_EQ(ErrorOf(Layout::Make({}, {})), "the mesh has no dimension: want at least one");
  EXPECT_EQ(ErrorOf(Layout::Make({2, 0}, {})), "the shape is 2 x 0: want dimensions of at least 1");
  EXPECT_EQ(ErrorOf(Layout::Make({1 << 20, 1 << 20}, {})),
            "the shape is 1048576 x 1048576: want dimensions of at least 1, and at most 16777216 "
            "ranks");
  EXPECT_EQ(
      ErrorOf(Layout::Make({2, 2}, {"dp"})),
      "the mesh has 2 dimensions and the names dp: want one name for each dimension, or none");
  EXPECT_EQ(ErrorOf(Layout::Make({2, 2}, {"dp", "dp"})),
            "two dimensions of the mesh have the name dp");
  EXPECT_EQ(ErrorOf(Layout::Make({2, 2}, {"dp", ""})), "a dimension of the mesh has an empty name");
  EXPECT_EQ(ErrorOf(Layout::Make({2, 2}, {0, 1, 2}, {})), "the mesh of 2 x 2 has 3 ranks: want 4");
  EXPECT_EQ(ErrorOf(Layout::Make({3}, {0, 1, 1}, {})), "the mesh has rank 1 twice");
  EXPECT_EQ(ErrorOf(Layout::Make({2}, {0, -1}, {})), "the mesh has the rank -1: want 0 or more");
}

TEST(LayoutTest, WrongNamesAreRefused) {
  Layout layout = Of({2, 2}, {"dp", "tp"});
  EXPECT_EQ(ErrorOf(layout.Slice({}, 0)), "the slice has no dimension: want at least one name");
  EXPECT_EQ(ErrorOf(layout.Slice({"pp"}, 0)), "the mesh has no dimension pp: want dp, tp");
  EXPECT_EQ(ErrorOf(layout.Slice({"dp", "dp"}, 0)), "the slice has dp twice");
  EXPECT_EQ(ErrorOf(layout.Slice({"dp"}, 4)), "rank 4 is not in the mesh");
  EXPECT_THAT(ErrorOf(Of({2, 2}).Slice({"dp"}, 0)), HasSubstr("its dimensions have no names"));
}

}  // namespace
}  // namespace rankrun::comm::mesh
