#include "launcher/scheduler/slurm_grammar.h"

#include <gtest/gtest.h>

namespace rankrun::launcher {
namespace {

using Names = std::vector<std::string>;

std::string ErrorOf(std::string_view text) {
  auto names = ParseNodeList(text);
  return names ? "accepted" : names.error().message;
}

TEST(SlurmGrammarTest, NodeListsAreExpandedInTheirOrder) {
  struct Row {
    const char* text;
    Names names;
  };
  for (const Row& row : {
           Row{"n1", {"n1"}},
           Row{"m5,n1", {"m5", "n1"}},
           Row{"n[1-3]", {"n1", "n2", "n3"}},
           Row{"n[01-03,7],m5", {"n01", "n02", "n03", "n7", "m5"}},
           Row{"n[8-11]", {"n8", "n9", "n10", "n11"}},
           Row{"n[008-011]", {"n008", "n009", "n010", "n011"}},
           Row{"n[098-102]", {"n098", "n099", "n100", "n101", "n102"}},
           Row{"r[1-2]n[1-2]-ib", {"r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"}},
           Row{"a[1,3]b,c[2]", {"a1b", "a3b", "c2"}},
           Row{"gpu-a_1.hpc[1].example.org", {"gpu-a_1.hpc1.example.org"}},
           Row{"[1-2]", {"1", "2"}},
           Row{"n[3,1-2]", {"n3", "n1", "n2"}},
       }) {
    auto names = ParseNodeList(row.text);
    ASSERT_TRUE(names) << row.text << ": " << names.error().message;
    EXPECT_EQ(*names, row.names) << row.text;
  }
}

TEST(SlurmGrammarTest, OtherTextsThanNodeListsAreRefused) {
  struct Row {
    const char* text;
    const char* error;
  };
  for (const Row& row : {
           Row{"", "want names of nodes with commas between, got \"\""},
           Row{"a,", "want names of nodes with commas between, got \"a,\""},
           Row{",a", "want names of nodes with commas between, got \",a\""},
           Row{"n[1-2", "a bracket is not closed in \"n[1-2\""},
           Row{"n]1", "this is not the name of a node in \"n]1\""},
           Row{"n 1", "this is not the name of a node in \"n 1\""},
           Row{"n[]", "want numbers or ranges of them in brackets, got \"\" in \"n[]\""},
           Row{"n[a-b]", "want numbers or ranges of them in brackets, got \"a-b\" in \"n[a-b]\""},
           Row{"n[1-]", "want numbers or ranges of them in brackets, got \"1-\" in \"n[1-]\""},
           Row{"n[1-2-3]",
               "want numbers or ranges of them in brackets, got \"1-2-3\" in \"n[1-2-3]\""},
           Row{"b[000x133]",
               "want numbers or ranges of them in brackets, got \"000x133\" in \"b[000x133]\""},
           Row{"n[3-1]", "the range ends before it begins, got \"3-1\" in \"n[3-1]\""},
           Row{"n[1-999999999]",
               "more than 100000 nodes, got \"1-999999999\" in "
               "\"n[1-999999999]\""},
           Row{"n[1-1000]m[1-1000]", "more than 100000 nodes in \"n[1-1000]m[1-1000]\""},
           Row{"n[1-90000],m[1-90000]", "more than 100000 nodes, got \"n[1-90000],m[1-90000]\""},
           Row{"n[1-1234567890123456789]",
               "want numbers or ranges of them in brackets, got \"1-1234567890123456789\" in "
               "\"n[1-1234567890123456789]\""},
           Row{"(null)", "this is not the name of a node in \"(null)\""},
       }) {
    EXPECT_EQ(ErrorOf(row.text), row.error);
  }
}

TEST(SlurmGrammarTest, CountsAreRepeated) {
  using Counts = std::vector<int>;
  EXPECT_EQ(ParseCounts("1"), Counts{1});
  EXPECT_EQ(ParseCounts("2(x3),1"), (Counts{2, 2, 2, 1}));
  EXPECT_EQ(ParseCounts("1,4(x2)"), (Counts{1, 4, 4}));
  for (const char* bad :
       {"", "x", "2(x", "2(x3", "2(3)", "2(x0)", "-1", "1,", "1(x999999999)", "1(x)", "2 (x3)"}) {
    EXPECT_EQ(ParseCounts(bad), std::nullopt) << bad;
  }
}

TEST(SlurmGrammarTest, GpusAreCounted) {
  struct Row {
    const char* text;
    std::optional<int> count;
  };
  for (const Row& row :
       {Row{"4", 4}, Row{"0", 0}, Row{"a100:4", 4}, Row{"gpu:4", 4}, Row{"gpu:a100:4", 4},
        Row{"gpu:a100:2,gpu:v100:1", 3}, Row{"gpu:a100:4(S:0-1)", 4},
        Row{"gpu:a100:4(S:0,1),gpu:v100:1(IDX:0)", 5}, Row{"a100:2,v100:3", 5},
        Row{"", std::nullopt}, Row{"gpu", std::nullopt}, Row{"a100:", std::nullopt},
        Row{"a100:x", std::nullopt}, Row{"-1", std::nullopt}, Row{"4,", 4},
        Row{"4,,4", std::nullopt}, Row{"99999", std::nullopt}, Row{"4(S:0", 4}}) {
    EXPECT_EQ(ParseGpuCount(row.text), row.count) << row.text;
  }
}

}  // namespace
}  // namespace rankrun::launcher
