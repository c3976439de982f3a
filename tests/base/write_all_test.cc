#include "base/write_all.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <thread>

#include "tests/base/support.h"

namespace rankrun {
namespace {

TEST(WriteAllTest, TakesAsManyCallsAsThePipeNeeds) {
  test::Pipe pipe = test::MakePipe();
  std::string sent(1'000'000, 'x');
  sent.back() = 'y';
  std::string received;
  std::thread reader([&] { received = test::ReadToEnd(pipe.read_end.get()); });
  EXPECT_TRUE(TryWriteAll(pipe.write_end.get(), sent));
  pipe.write_end.Reset();
  reader.join();
  EXPECT_TRUE(received == sent);
}

TEST(WriteAllTest, NothingIsWrittenAtOnce) { EXPECT_TRUE(TryWriteAll(Fd::kNone, "")); }

TEST(WriteAllTest, AClosedReaderIsAnError) {
  signal(SIGPIPE, SIG_IGN);
  test::Pipe pipe = test::MakePipe();
  pipe.read_end.Reset();
  auto written = TryWriteAll(pipe.write_end.get(), "text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kSystem);
  EXPECT_EQ(written.error().message, "write: Broken pipe");
  WriteAll(pipe.write_end.get(), "text");  // cannot report a failure; must not crash either
}

}  // namespace
}  // namespace rankrun
