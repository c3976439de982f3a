#include "agent/worker/program_arguments.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using Words = std::vector<std::string>;

std::string Replaced(const std::string& argument, bool halve_dollars = false) {
  Program program{.file = "/bin/sh", .arguments = {"sh", argument}, .halve_dollars = halve_dollars};
  return ArgumentsFor(program, 12).at(1);
}

TEST(ProgramArgumentsTest, BothSpellingsOfTheLocalRankAreReplaced) {
  EXPECT_EQ(Replaced("${local_rank}"), "12");
  EXPECT_EQ(Replaced("$local_rank"), "12");
  EXPECT_EQ(Replaced("--out=a${local_rank}b/$local_rank.log"), "--out=a12b/12.log");
  EXPECT_EQ(Replaced("$local_rank$local_rank"), "1212");
}

TEST(ProgramArgumentsTest, EverythingElseStays) {
  for (const char* text : {"", "$", "a$", "$ ", "${", "${}", "${local_rank", "${local_rank }",
                           "$local_rank2", "$local_ranks", "$LOCAL_RANK", "${LOCAL_RANK}", "$RANK",
                           "$_", "${rank}", "$1", "local_rank", "{local_rank}", "\\$x"}) {
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
  Program program{.file = "/x", .arguments = {"$local_rank", "$local_rank"}};
  EXPECT_EQ(ArgumentsFor(program, 3), (Words{"$local_rank", "3"}));
}

}  // namespace
}  // namespace rankrun::agent
