#include "agent/worker/program_arguments.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using Words = std::vector<std::string>;

// Arguments of local rank 12 on node 3, whose first rank is 100.
std::string Replaced(const std::string& argument, bool as_torchrun = false) {
  JobSpec spec;
  spec.host_name = "h$rank";
  spec.program = {.file = "/bin/sh", .arguments = {"sh", argument}, .as_torchrun = as_torchrun};
  NodePlace place{.node_rank = 3, .first_rank = 100, .world_size = 128, .master_addr = ""};
  return ArgumentsFor(spec, 12, place).at(1);
}

TEST(ProgramArgumentsTest, BothSpellingsOfTheLocalRankAreReplaced) {
  EXPECT_EQ(Replaced("${local_rank}"), "12");
  EXPECT_EQ(Replaced("$local_rank"), "12");
  EXPECT_EQ(Replaced("--out=a${local_rank}b/$local_rank.log"), "--out=a12b/12.log");
  EXPECT_EQ(Replaced("$local_rank$local_rank"), "1212");
}

TEST(ProgramArgumentsTest, ThePlaceInTheRoundIsReplaced) {
  EXPECT_EQ(Replaced("r${rank}n${node_rank}of${world_size}"), "r112n3of128");
  EXPECT_EQ(Replaced("$rank/$node_rank/$world_size"), "$rank/$node_rank/$world_size")
      << "a shell's";
  EXPECT_EQ(Replaced("${hostname}-${rank}"), "h$rank-112");
}

TEST(ProgramArgumentsTest, WithoutAPlaceThoseOfTheRoundStay) {
  JobSpec spec;
  spec.host_name = "h";
  spec.program.arguments = {"sh", "${local_rank} ${rank} $node_rank ${world_size} ${hostname}"};
  EXPECT_EQ(ArgumentsFor(spec, 1, std::nullopt).at(1), "1 ${rank} $node_rank ${world_size} h");
}

TEST(ProgramArgumentsTest, TorchrunKnowsTheLocalRankOnly) {
  for (const char* text : {"${rank}", "$rank", "${node_rank}", "$world_size", "${hostname}"}) {
    EXPECT_EQ(Replaced(text, true), text);
  }
}

TEST(ProgramArgumentsTest, EverythingElseStays) {
  for (const char* text : {"",
                           "$",
                           "a$",
                           "$ ",
                           "${",
                           "${}",
                           "${local_rank",
                           "${local_rank }",
                           "$local_rank2",
                           "$local_ranks",
                           "$LOCAL_RANK",
                           "${LOCAL_RANK}",
                           "$RANK",
                           "$_",
                           "${ rank}",
                           "$1",
                           "local_rank",
                           "{local_rank}",
                           "\\$x",
                           "${rank",
                           "$ranks",
                           "${hostname:-x}",
                           "${9rank}",
                           "$Rank"}) {
    EXPECT_EQ(Replaced(text), text);
    EXPECT_EQ(Replaced(text, true), text);
  }
}

TEST(ProgramArgumentsTest, TwoDollarsStandForThemselvesOrForOne) {
  struct Row {
    const char* text;
    const char* halved;
  };
  for (const Row& row :
       {Row{"$$", "$"}, Row{"echo $$", "echo $"}, Row{"$$$$", "$$"}, Row{"$$$", "$$"},
        Row{"$${local_rank}", "${local_rank}"}, Row{"$$local_rank", "$local_rank"}}) {
    EXPECT_EQ(Replaced(row.text), row.text);
    EXPECT_EQ(Replaced(row.text, true), row.halved);
  }
  EXPECT_EQ(Replaced("$$$local_rank"), "$$12");
  EXPECT_EQ(Replaced("$$$local_rank", true), "$12");
}

TEST(ProgramArgumentsTest, TheProgramItselfKeepsItsName) {
  JobSpec spec;
  spec.program = {.file = "/x", .arguments = {"$local_rank", "$local_rank"}};
  EXPECT_EQ(ArgumentsFor(spec, 3, std::nullopt), (Words{"$local_rank", "3"}));
}

}  // namespace
}  // namespace rankrun::agent
