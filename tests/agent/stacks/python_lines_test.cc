#include "agent/stacks/helper/python_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace rankrun::agent {
namespace {

using enum PythonLineTable;

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (int value : values) bytes += static_cast<char>(value);
  return bytes;
}

// Tables of `def f():` in line 10, whose lines 11, 12 and 11 are executed, as these versions
// of CPython have made them.
TEST(PythonLinesTest, LnotabAddsUpToTheInstruction) {
  const std::string table = Bytes({0, 1, 4, 1, 6, -1});
  EXPECT_EQ(PythonLineAt(kLnotab, table, 10, 0), 11);
  EXPECT_EQ(PythonLineAt(kLnotab, table, 10, 2), 11);
  EXPECT_EQ(PythonLineAt(kLnotab, table, 10, 4), 12);
  EXPECT_EQ(PythonLineAt(kLnotab, table, 10, 8), 12);
  EXPECT_EQ(PythonLineAt(kLnotab, table, 10, 10), 11);
}

TEST(PythonLinesTest, LinetableHasRanges) {
  const std::string table = Bytes({4, 1, 2, -128, 6, 1});
  EXPECT_EQ(PythonLineAt(kLinetable, table, 10, 2), 11);
  EXPECT_EQ(PythonLineAt(kLinetable, table, 10, 4), 0) << "an instruction without a line";
  EXPECT_EQ(PythonLineAt(kLinetable, table, 10, 6), 12);
  EXPECT_EQ(PythonLineAt(kLinetable, table, 10, 100), 0);
}

TEST(PythonLinesTest, LocationsHaveSixKindsOfEntries) {
  const std::string table = Bytes({0x80 | 11 << 3 | 1, 4, 9,         // 2 units: line + 1
                                   0x80 | 0 << 3 | 0, 0x12,          // 1 unit: the same line
                                   0x80 | 13 << 3 | 0, 0x40 | 2, 1,  // 1 unit: + 33
                                   0x80 | 15 << 3 | 0,               // 1 unit: none
                                   0x80 | 14 << 3 | 0, 3, 0, 1, 1,   // 1 unit: - 1
                                   0x80 | 12 << 3 | 7, 0, 0});       // 8 units: + 2
  EXPECT_EQ(PythonLineAt(kLocations, table, 10, 0), 11);
  EXPECT_EQ(PythonLineAt(kLocations, table, 10, 2), 11);
  EXPECT_EQ(PythonLineAt(kLocations, table, 10, 4), 11);
  EXPECT_EQ(PythonLineAt(kLocations, table, 10, 6), 44);
  EXPECT_EQ(PythonLineAt(kLocations, table, 10, 8), 0);
  EXPECT_EQ(PythonLineAt(kLocations, table, 10, 10), 43);
  EXPECT_EQ(PythonLineAt(kLocations, table, 10, 12), 45);
  EXPECT_EQ(PythonLineAt(kLocations, table, 10, 28), 0);
}

TEST(PythonLinesTest, BeforeItsFirstInstructionACodeIsAtItsFirstLine) {
  for (auto kind : {kLnotab, kLinetable, kLocations}) {
    EXPECT_EQ(PythonLineAt(kind, Bytes({1, 2}), 10, -1), 10);
  }
}

TEST(PythonLinesTest, ADamagedTableEnds) {
  uint32_t seed = 1;
  for (int round = 0; round < 20'000; ++round) {
    std::string table(static_cast<size_t>(round % 40), '\0');
    for (char& byte : table) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
    for (auto kind : {kLnotab, kLinetable, kLocations}) {
      EXPECT_GE(PythonLineAt(kind, table, 1, round % 300), 0);
    }
  }
}

}  // namespace
}  // namespace rankrun::agent
