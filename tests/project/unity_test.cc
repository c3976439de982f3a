#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "tests/base/support.h"
#include "tests/paths.h"
#include "tests/project/command.h"

// cmake/unity.awk, which decides the sources that are compiled as one unit.
namespace rankrun {
namespace {

using Units = std::map<std::string, int>;

class UnityTest : public ::testing::Test {
 protected:
  // The unit of each source, given in this order.
  Units UnitsOf(const std::string& sources) const {
    const std::string& root = folder_.path();
    const std::string command = "cd " + root + " && awk -v most=12 -v root=" + root + " -f " +
                                test::InSource("cmake/unity.awk") + " " + sources;
    Units units;
    for (const std::string& line : test::LinesOf(command)) {
      std::istringstream words(line);
      int unit = 0;
      std::string source;
      words >> unit >> source;
      units[source] = unit;
    }
    return units;
  }

  const test::TempFolder folder_;
};

TEST_F(UnityTest, SourcesWithoutACommonNameShareAUnit) {
  folder_.Write("a.cc",
                "namespace rankrun {\nnamespace {\nint Left() { return 1; }\n}  // namespace\n}\n");
  folder_.Write(
      "b.cc", "namespace rankrun {\nnamespace {\nint Right() { return 1; }\n}  // namespace\n}\n");
  EXPECT_EQ(UnitsOf("a.cc b.cc"), (Units{{"a.cc", 1}, {"b.cc", 1}}));
}

TEST_F(UnityTest, SourcesWithAnAnonymousNameInCommonDoNot) {
  folder_.Write(
      "a.cc", "namespace rankrun {\nnamespace {\nstruct Both final : Base {\n}  // namespace\n}\n");
  folder_.Write("b.cc",
                "namespace rankrun {\nnamespace {\nint Both(int x) {\n}  // namespace\n}\n");
  EXPECT_EQ(UnitsOf("a.cc b.cc"), (Units{{"a.cc", 1}, {"b.cc", 2}}));
}

TEST_F(UnityTest, ANameOfAHeaderThatTheOtherIncludesIsACommonName) {
  folder_.Write("thrown.h", "namespace rankrun {\nstruct Thrown {\n};\n}  // namespace rankrun\n");
  folder_.Write("through.h", "#include \"thrown.h\"\n");
  folder_.Write("a.cc", "#include \"through.h\"\nnamespace rankrun {\n}\n");
  folder_.Write(
      "b.cc",
      "namespace rankrun {\nnamespace {\nstd::string Thrown(int x) {\n}  // namespace\n}\n");
  EXPECT_EQ(UnitsOf("a.cc b.cc"), (Units{{"a.cc", 1}, {"b.cc", 2}}));
  EXPECT_EQ(UnitsOf("b.cc a.cc"), (Units{{"a.cc", 2}, {"b.cc", 1}}));
}

TEST_F(UnityTest, ANameOfAHeaderInAnotherNamespaceIsNone) {
  folder_.Write(
      "thrown.h",
      "namespace rankrun::store {\nstruct Thrown {\n};\n}  // namespace rankrun::store\n");
  folder_.Write("a.cc", "#include \"thrown.h\"\nnamespace rankrun {\n}\n");
  folder_.Write(
      "b.cc",
      "namespace rankrun {\nnamespace {\nstd::string Thrown(int x) {\n}  // namespace\n}\n");
  EXPECT_EQ(UnitsOf("a.cc b.cc"), (Units{{"a.cc", 1}, {"b.cc", 1}}));
}

TEST_F(UnityTest, ANamespaceNearerByHidesAnotherOfItsName) {
  folder_.Write("near.h", "namespace rankrun::comm::rpc {\nint One();\n}\n");
  folder_.Write("a.cc", "#include \"near.h\"\nnamespace rankrun::comm {\n}\n");
  folder_.Write("b.cc", "namespace rankrun::comm {\nvoid Run() {\n  rpc::Init();\n}\n}\n");
  EXPECT_EQ(UnitsOf("a.cc b.cc"), (Units{{"a.cc", 1}, {"b.cc", 2}}));
  EXPECT_EQ(UnitsOf("b.cc a.cc"), (Units{{"a.cc", 2}, {"b.cc", 1}}));
}

}  // namespace
}  // namespace rankrun
