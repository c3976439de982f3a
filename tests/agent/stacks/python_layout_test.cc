#include "agent/stacks/helper/python_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace rankrun::agent {
namespace {

using ::testing::HasSubstr;

void Put(std::string& bytes, size_t at, uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// _Py_DebugOffsets of 3.13 with recognizable offsets.
std::string Offsets(uint64_t version) {
  std::string bytes(kDebugOffsetsBytes, '\0');
  bytes.replace(0, 8, "xdebugpy");
  Put(bytes, 8, version);
  Put(bytes, 40, 1001);   // runtime_state.interpreters_head
  Put(bytes, 72, 1002);   // interpreter_state.threads_head
  Put(bytes, 296, 1003);  // code_object.qualname
  Put(bytes, 560, 48);    // unicode_object.asciiobject_size
  return bytes;
}

TEST(PythonLayoutTest, VersionsFrom8To13AreKnown) {
  for (int minor = 8; minor <= 13; ++minor) EXPECT_TRUE(PythonLayoutOf(minor)) << minor;
  EXPECT_FALSE(PythonLayoutOf(7));
  EXPECT_FALSE(PythonLayoutOf(14));
}

TEST(PythonLayoutTest, OffsetsOfTheProcessReplaceThoseOfTheTable) {
  auto layout = PythonLayoutFrom(Offsets(0x030d00f0));
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->runtime_interpreters, 1001u);
  EXPECT_EQ(layout->interpreter_threads, 1002u);
  EXPECT_EQ(layout->code_name, 1003u);
  EXPECT_EQ(layout->ascii_size, 48u);
  EXPECT_EQ(layout->compact_size, 64u);
}

TEST(PythonLayoutTest, OtherProcessesAreRefused) {
  EXPECT_EQ(PythonLayoutFrom(std::string(kDebugOffsetsBytes, 'x')).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(PythonLayoutFrom(std::string("xdebugpy")).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(PythonLayoutFrom(Offsets(0x030e00f0)).error().message,
              HasSubstr("CPython 3.14 is not known"));
  std::string free_threaded = Offsets(0x030d00f0);
  Put(free_threaded, 16, 1);
  EXPECT_THAT(PythonLayoutFrom(free_threaded).error().message, HasSubstr("without a global lock"));
  std::string torn = Offsets(0x030d00f0);
  Put(torn, 72, UINT64_MAX / 2);
  EXPECT_FALSE(PythonLayoutFrom(torn));
}

TEST(PythonLayoutTest, NamesOfFilesHaveTheVersion) {
  EXPECT_EQ(PythonMinorOf("/usr/lib/libpython3.11.so.1.0"), 11);
  EXPECT_EQ(PythonMinorOf("/usr/bin/python3.8"), 8);
  EXPECT_EQ(PythonMinorOf("python3.13t"), 13);
  EXPECT_EQ(PythonMinorOf("/usr/bin/python3"), std::nullopt);
  EXPECT_EQ(PythonMinorOf("/usr/lib/libpython2.7.so"), std::nullopt);
  EXPECT_EQ(PythonMinorOf(""), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent
