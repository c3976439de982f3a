#include <gmock/gmock.h>

#include <filesystem>
#include <vector>

#include <rankrun/context.h>
#include <rankrun/mesh.h>

#include "comm/group/group.h"
#include "comm/group/process_group_access.h"
#include "tests/base/support.h"
#include "tests/comm/worlds.h"
#include "tests/paths.h"

namespace rankrun::comm {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Text(const std::vector<int>& numbers) {
  std::string text;
  for (int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

// Returns the global ranks whose numbers an all-reduce of the group has added.
std::string SumIn(ProcessGroup& group) {
  int sum = 1 << group.global_rank();
  group.AllReduce(Tensor(&sum, DType::kInt32, 1));
  std::vector<int> ranks;
  for (int rank = 0; rank < 31; ++rank) {
    if ((sum >> rank & 1) != 0) ranks.push_back(rank);
  }
  return Text(ranks);
}

struct MeshTest : testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, MeshTest, testing::Values("shm", "tcp", "hierarchical", "gloo"),
                         NameOfBackend);

TEST_P(MeshTest, M1_HasAGroupAlongEachDimension) {
  auto texts = InWorld(8, GetParam(), [](ProcessGroup&) {
    DeviceMesh mesh = InitDeviceMesh("cpu", {2, 4});
    return SumIn(mesh.group(0)) + " " + SumIn(mesh.group(1)) + " " + Text(*mesh.coordinate()) +
           " " + std::to_string(mesh.local_rank(0)) + std::to_string(mesh.local_rank(1));
  });
  EXPECT_THAT(texts, ElementsAre("0,4 0,1,2,3 0,0 00", "1,5 0,1,2,3 0,1 01", "2,6 0,1,2,3 0,2 02",
                                 "3,7 0,1,2,3 0,3 03", "0,4 4,5,6,7 1,0 10", "1,5 4,5,6,7 1,1 11",
                                 "2,6 4,5,6,7 1,2 12", "3,7 4,5,6,7 1,3 13"));
}

TEST(MeshSliceTest, M2_OneDimensionUsesTheWorld) {
  auto texts = InWorld(3, "shm", [](ProcessGroup& world) {
    DeviceMesh mesh = InitDeviceMesh("cpu", {3});
    return std::string(&mesh.group() == &world ? "the world " : "another group ") +
           std::to_string(mesh.local_rank()) + " " + std::to_string(mesh.global_rank());
  });
  EXPECT_THAT(texts, ElementsAre("the world 0 0", "the world 1 1", "the world 2 2"));
}

TEST(MeshSliceTest, NamesFindGroupsAndSlices) {
  auto texts = InWorld(8, "shm", [](ProcessGroup&) {
    DeviceMesh mesh = InitDeviceMesh("cpu", {2, 2, 2}, {.names = {"dp", "pp", "cp"}});
    DeviceMesh slice = mesh.Slice({"cp", "dp"});
    std::string text = Text(slice.ranks()) + " " + mesh.group("pp").description() + " ";
    text += &slice.group("dp") == &mesh.group(0) ? "same " : "other ";
    DeviceMesh flat = slice.Flatten();
    return text + flat.names()[0] + " " + SumIn(flat.group()) + " " +
           std::to_string(flat.local_rank());
  });
  EXPECT_EQ(texts[0], "0,1,4,5 mesh_pp same dp_cp 0,1,4,5 0");
  EXPECT_EQ(texts[5], "0,1,4,5 mesh_pp same dp_cp 0,1,4,5 3");
  EXPECT_EQ(texts[6], "2,3,6,7 mesh_pp same dp_cp 2,3,6,7 2");
}

TEST(MeshSliceTest, ARankOutsideHasNoGroups) {
  auto texts = InWorld(3, "shm", [](ProcessGroup&) {
    DeviceMesh mesh = InitDeviceMesh("cpu", {2}, {.ranks = {2, 0}});
    if (mesh.coordinate()) return Text(mesh.group().global_ranks());
    return ErrorOf([&] { static_cast<void>(mesh.group()); });
  });
  EXPECT_THAT(
      texts,
      ElementsAre("2,0", "DistError: DeviceMesh::group: global rank 1 is not in the mesh", "2,0"));
}

TEST(MeshSliceTest, GroupsThatExistMakeAMesh) {
  auto texts = InWorld(4, "shm", [](ProcessGroup& world) {
    DeviceMesh first = InitDeviceMesh("cpu", {2, 2});
    DeviceMesh again = MeshFromGroups("cpu", first.groups(), {2, 2}, {.names = {"a", "b"}});
    DeviceMesh line = MeshFromGroups("cpu", {&world});
    return std::string(&again.group("b") == &first.group(1) ? "same " : "other ") +
           Text(line.shape()) + " " + Text(line.ranks());
  });
  EXPECT_THAT(texts, Each("same 4 0,1,2,3"));
}

TEST(MeshSliceTest, ScopesAreNested) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    std::string text = ErrorOf([] { MeshScope::Current(); });
    DeviceMesh outer = MeshFromGroups("cpu", {&world}, {}, {.names = {"outer"}});
    DeviceMesh inner = MeshFromGroups("cpu", {&world}, {}, {.names = {"inner"}});
    MeshScope first(outer);
    {
      MeshScope second(inner);
      text += " " + MeshScope::Current().names()[0];
    }
    return text + " " + MeshScope::Current().names()[0];
  });
  EXPECT_THAT(texts, Each("DistError: MeshScope::Current: no mesh is current inner outer"));
}

TEST(MeshOptionsTest, TheGroupsHaveThem) {
  auto texts = InWorld(4, "shm", [](ProcessGroup&) {
    DeviceMesh mesh = InitDeviceMesh(
        "cpu", {2, 2}, {.names = {"a", "b"}, .timeout = seconds(50), .backend = "tcp"});
    DeviceMesh flat = mesh.Slice({"a", "b"}).Flatten();
    DeviceMesh line = InitDeviceMesh("cpu", {4}, {.timeout = seconds(40)});
    std::string text;
    for (ProcessGroup* group : {&mesh.group(0), &mesh.group(1), &flat.group(), &line.group()}) {
      text += group->backend() + " " +
              std::to_string(GroupOf(*group).identity().timeout / seconds(1)) + ", ";
    }
    return text;
  });
  EXPECT_THAT(texts, Each("tcp 50, tcp 50, tcp 50, shm 40, "));
}

TEST(MeshOptionsTest, AMeshMayMakeTheWorld) {
  auto texts = OnRanks(2, [] {
    DeviceMesh mesh = InitDeviceMesh("cpu", {2}, {.timeout = seconds(50), .backend = "tcp"});
    std::string text = World().backend() + (&mesh.group() == &World() ? " the world" : " another");
    Destroy();
    return text;
  });
  EXPECT_THAT(texts, Each("tcp the world"));
}

// Rank 3 lacks the backend at first. So it enters no group, along both dimensions.
TEST(MeshErrorTest, AFailureAlongOneDimensionEndsTheOthersAndMayBeRetried) {
  test::TempFolder folder;
  std::filesystem::create_symlink(test::Library("librankrun_gloo.so"),
                                  folder.Path("librankrun_rare.so"));
  auto texts = InWorld(4, "shm", [&](ProcessGroup& world) {
    bool has_it = world.global_rank() != 3;
    if (has_it) setenv("RANKRUN_PLUGIN_DIR", folder.path().c_str(), 1);
    MeshOptions rare{.backend = "rare"};
    std::string text = ErrorOf([&] { InitDeviceMesh("cpu", {2, 2}, rare); });
    setenv("RANKRUN_PLUGIN_DIR", folder.path().c_str(), 1);
    DeviceMesh mesh = InitDeviceMesh("cpu", {2, 2}, rare);
    return text + " " + SumIn(mesh.group(0)) + " " + SumIn(mesh.group(1));
  });
  EXPECT_THAT(texts, Each(HasSubstr("backend is \"rare\": want")));
  EXPECT_THAT(texts[0], testing::EndsWith(" 0,2 0,1"));
  EXPECT_THAT(texts[3], testing::EndsWith(" 1,3 2,3"));
}

TEST(MeshErrorTest, AMeshOfAnEndedWorldMakesNoGroup) {
  auto texts = InWorld(2, "shm", [](ProcessGroup&) {
    DeviceMesh mesh = InitDeviceMesh("cpu", {2, 1}, {.names = {"a", "b"}});
    Destroy();
    Init({.backend = "shm"});
    return ErrorOf([&] { mesh.Flatten(); });
  });
  EXPECT_THAT(texts, Each(HasSubstr("is destroyed")));
}

TEST(MeshErrorTest, GroupsOfTwoContextsAndWithoutGpusAreRefused) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Context other("other", {.backend = "shm"});
    DeviceMesh mesh = InitDeviceMesh("cpu", {2, 1});
    std::string text = ErrorOf([&] {
      MeshFromGroups("cpu", {&other.World(), &mesh.group(1)}, {2, 1});
    });
    text += "\n" + ErrorOf([&] { MeshFromGroups("cuda", {&world}); });
    text += "\n" + ErrorOf([&] { mesh.Flatten(); });
    DeviceMesh flat = MeshFromGroups("cpu", {&other.World()});
    return text + "\n" + SumIn(flat.group());
  });
  EXPECT_THAT(texts,
              Each(AllOf(HasSubstr("is of another context than the first one"),
                         HasSubstr("has no backend for GPU memory"),
                         HasSubstr("want a name for the new one"), testing::EndsWith("\n0,1"))));
}

TEST(MeshErrorTest, BadArgumentsAreToldToAllRanks) {
  auto texts = InWorld(4, "shm", [](ProcessGroup& world) {
    bool is_wrong = world.global_rank() == 1;
    std::string text = ErrorOf([&] {
      InitDeviceMesh("cpu", is_wrong ? std::vector{3, 2} : std::vector{2, 2});
    });
    text += "\n" + ErrorOf([&] { InitDeviceMesh("cpu", {2, is_wrong ? 1 : 2}); });
    text += "\n" + ErrorOf([&] { InitDeviceMesh(is_wrong ? "cuda:0" : "cpu", {4}); });
    text += "\n" + ErrorOf([&] { InitDeviceMesh("cuda", {4}); });
    return text;
  });
  EXPECT_THAT(texts[1], HasSubstr("a mesh of 3 x 2 needs 6 ranks, and the world has 4"));
  EXPECT_THAT(texts[1], HasSubstr("device is \"cuda:0\": want cpu or cuda, without an index"));
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("a mesh of 3 x 2 needs"), HasSubstr("a mesh of 2 x 1"),
                                HasSubstr("a mesh of 2 x 2"), HasSubstr("\"cuda:0\""),
                                HasSubstr("device is \"cuda\", and the backend"))));
}

TEST(MeshErrorTest, BadDimensionsAndGroupsAreRefused) {
  auto texts = InWorld(4, "shm", [](ProcessGroup& world) {
    DeviceMesh mesh = InitDeviceMesh("cpu", {2, 2}, {.names = {"a", "b"}});
    std::string text = ErrorOf([&] { mesh.local_rank(); });
    text += "\n" + ErrorOf([&] { mesh.group(2); });
    text += "\n" + ErrorOf([&] { mesh.group("c"); });
    text += "\n" + ErrorOf([&] { mesh.Slice({}); });
    text += "\n" + ErrorOf([&] { MeshFromGroups("cpu", {}); });
    text += "\n" + ErrorOf([&] { MeshFromGroups("cpu", {&mesh.group(0), &mesh.group(1)}); });
    text += "\n" + ErrorOf([&] { MeshFromGroups("cpu", {&world}, {2, 2}); });
    text += "\n" + ErrorOf([&] {
              MeshFromGroups("cpu", {&mesh.group(1), &mesh.group(0)}, {2, 2});
            });
    return text;
  });
  EXPECT_THAT(
      texts[0],
      AllOf(testing::StartsWith(
                "DistError: DeviceMesh::local_rank: the mesh has 2 dimensions: want a number "
                "from 0 to 1, or a name\n"
                "DistError: DeviceMesh::group: there is no dimension 2: want a number from 0 "
                "to 1, or a name\n"
                "DistError: DeviceMesh::group: the mesh has no dimension c: want a, b\n"
                "DistError: DeviceMesh::Slice: the slice has no dimension: want at least one "
                "name\n"
                "DistError: MeshFromGroups: there is no group: want at least one\n"
                "DistError: MeshFromGroups: there is no shape: want one size per group, 2\n"
                "DistError: MeshFromGroups: the mesh has 2 dimensions, and there are 1 "
                "groups: want one for each\n"
                "DistError: MeshFromGroups: the group \""),
            HasSubstr("is not the one along dimension 0 of the mesh that has this rank")));
}

}  // namespace
}  // namespace rankrun::comm
