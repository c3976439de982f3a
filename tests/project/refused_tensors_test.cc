// Programs that the public headers refuse, each with one error.

#include <gmock/gmock.h>

#include <fstream>

#include "tests/base/support.h"
#include "tests/paths.h"
#include "tests/project/command.h"

namespace rankrun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns the lines with errors of a program that has this statement.
std::vector<std::string> ErrorsOf(const std::string& statement) {
  const test::TempFolder folder;
  const std::string source = folder.Write(
      "program.cc",
      "#include <rankrun/distributed.h>\n#include <string>\nstruct Own { int value; };\n"
      "void Call(rankrun::ProcessGroup& world) {\n" +
          statement + "\n}\n");
  return test::LinesOf("c++ -std=c++20 -fsyntax-only -I" + test::InSource("comm/include") + " " +
                       source + " 2>&1 | grep error: || true");
}

TEST(RefusedTensorsTest, MemoryOfOtherTypesGetsASentence) {
  for (const std::string type : {"std::vector<char> t(3);", "std::string t(3, 'a');",
                                 "std::vector<Own> t(3);", "std::vector<long double> t(3);"}) {
    EXPECT_THAT(ErrorsOf(type + " world.AllReduce(t);"),
                ElementsAre(HasSubstr("no element type of a tensor: use float, double, _Float16")))
        << type;
  }
  for (const std::string use :
       {"std::vector<bool> t(3); world.AllReduce(t);",
        "const std::vector<bool> t(3); world.ISend(t, rankrun::GlobalRank{0});"}) {
    EXPECT_THAT(ErrorsOf(use), ElementsAre(HasSubstr("std::vector<bool> has bits: use "
                                                     "std::vector<uint8_t>")))
        << use;
  }
}

TEST(RefusedTensorsTest, MemoryThatEndsTooEarlyIsRefused) {
  EXPECT_EQ(ErrorsOf("world.AllReduce(std::vector<float>(3));").size(), 1U);
  EXPECT_THAT(ErrorsOf("world.ISend(std::vector<float>(3), rankrun::GlobalRank{0});"),
              ElementsAre(HasSubstr("use of deleted function")));
  EXPECT_THAT(ErrorsOf("double loss = 1; world.ISend(loss * 2, rankrun::GlobalRank{0});"),
              ElementsAre(HasSubstr("use of deleted function")));
  EXPECT_FALSE(ErrorsOf("rankrun::P2POp op{rankrun::P2POp::Kind::kSend, 3.0};").empty());
  EXPECT_THAT(ErrorsOf("world.Send(std::vector<float>(3), rankrun::GlobalRank{0});"),
              ElementsAre());
}

}  // namespace
}  // namespace rankrun
