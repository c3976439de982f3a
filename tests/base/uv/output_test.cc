#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <memory>
#include <thread>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_output.h"
#include "tests/base/support.h"
#include "tests/base/uv/ready.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;

struct OutputTest : testing::Test {
  OutputTest() { signal(SIGPIPE, SIG_IGN); }
  ~OutputTest() override { pipe.read_end.Reset(); }  // ends a write in progress

  bool RunUntilWritten(const Output& output) {
    return loop.RunUntil([&] { return output.queued_bytes() == 0; }, test::kLong);
  }
  std::string ReadPipe() {
    pipe.write_end.Reset();
    return test::ReadToEnd(pipe.read_end.get());
  }

  test::Pipe pipe = test::MakePipe();  // outlives the loop, which waits for writes in progress
  Loop loop;
};

TEST_F(OutputTest, WritesInOrder) {
  Output output(loop, pipe.write_end.get(), {});
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    output.Write(std::to_string(i) + "\n");
    expected += std::to_string(i) + "\n";
  }
  ASSERT_TRUE(RunUntilWritten(output));
  EXPECT_EQ(ReadPipe(), expected);
  EXPECT_EQ(output.failure(), 0);
  EXPECT_EQ(output.TakeLoss(), 0u);
}

TEST_F(OutputTest, AFullPipeDoesNotBlockTheLoop) {
  Output output(loop, pipe.write_end.get(), {});
  size_t filled = test::FillPipe(pipe.write_end.get());
  output.Write("first ");
  output.Write("second");
  bool turned = false;
  loop.Post([&] { turned = true; });
  ASSERT_TRUE(loop.RunUntil([&] { return turned; }, test::kLong));
  EXPECT_FALSE(loop.RunUntil([&] { return output.queued_bytes() < 12; }, milliseconds(10)));
  std::string got;
  std::thread reader([&] { got = test::ReadToEnd(pipe.read_end.get()); });
  ASSERT_TRUE(RunUntilWritten(output));
  pipe.write_end.Reset();
  reader.join();
  EXPECT_EQ(got.substr(filled), "first second");
}

TEST_F(OutputTest, MoreThanAPipeHoldsArrivesWhole) {
  std::string sent;
  for (int i = 0; sent.size() < 2'000'000; ++i) sent += std::to_string(i) + " ";
  Output output(loop, pipe.write_end.get(), {});
  std::string got;
  std::thread reader([&] { got = test::ReadToEnd(pipe.read_end.get()); });
  for (size_t at = 0; at < sent.size(); at += 300'000) {
    output.Write(std::string_view(sent).substr(at, 300'000));
  }
  EXPECT_TRUE(RunUntilWritten(output));
  pipe.write_end.Reset();
  reader.join();
  EXPECT_TRUE(got == sent);
}

// On a non-blocking descriptor, writes come back short or fail with EAGAIN.
TEST_F(OutputTest, ANonBlockingPipeLosesNothing) {
  fcntl(pipe.write_end.get(), F_SETFL, O_NONBLOCK);
  std::string sent(1'000'000, 'n');
  Output output(loop, pipe.write_end.get(), {});
  output.Write(sent);
  EXPECT_FALSE(loop.RunUntil([&] { return output.queued_bytes() == 0; }, milliseconds(10)));
  std::string got;
  std::thread reader([&] { got = test::ReadToEnd(pipe.read_end.get()); });
  EXPECT_TRUE(RunUntilWritten(output));
  pipe.write_end.Reset();
  reader.join();
  EXPECT_TRUE(got == sent);
  EXPECT_EQ(output.failure(), 0);
  EXPECT_EQ(output.TakeLoss(), 0u);
}

TEST_F(OutputTest, ReportsTheProgressOfEachWrite) {
  int progress = 0;
  Output output(loop, pipe.write_end.get(), [&] { progress += 1; });
  output.Write("one");
  EXPECT_EQ(progress, 0);
  ASSERT_TRUE(loop.RunUntil([&] { return progress == 1; }, test::kLong));
  EXPECT_EQ(output.queued_bytes(), 0u);
  output.Write("two");
  ASSERT_TRUE(loop.RunUntil([&] { return progress == 2; }, test::kLong));
}

TEST_F(OutputTest, NothingToWriteIsNoWrite) {
  int progress = 0;
  Output output(loop, pipe.write_end.get(), [&] { progress += 1; });
  output.Write("");
  EXPECT_FALSE(loop.RunUntil([&] { return progress > 0; }, milliseconds(5)));
}

TEST_F(OutputTest, WithAClosedReaderNothingWaits) {
  int progress = 0;
  Output output(loop, pipe.write_end.get(), [&] { progress += 1; });
  pipe.read_end.Reset();
  output.Write("12345");
  output.Write("678");
  ASSERT_TRUE(loop.RunUntil([&] { return output.queued_bytes() == 0; }, test::kLong));
  EXPECT_EQ(output.failure(), EPIPE);
  EXPECT_GE(progress, 1);
  output.Write("90");
  EXPECT_EQ(output.queued_bytes(), 0u);
  EXPECT_EQ(output.TakeLoss(), 0u) << "there is no reader";
}

TEST_F(OutputTest, OnlyUnwrittenBytesAreLost) {
  signal(SIGXFSZ, SIG_IGN);
  test::TempFolder folder;
  Fd file(open(folder.Path("file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Output output(loop, file.get(), {});
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 5;
  setrlimit(RLIMIT_FSIZE, &small);  // EFBIG, like a full disk
  for (const char* text : {"shown", "lost"}) {
    output.Write(text);
    ASSERT_TRUE(RunUntilWritten(output));
  }
  EXPECT_EQ(output.failure(), EFBIG);
  EXPECT_EQ(output.TakeLoss(), 0u) << "it would be lost too";
  setrlimit(RLIMIT_FSIZE, &before);
  output.Write(" again");
  ASSERT_TRUE(RunUntilWritten(output));
  EXPECT_EQ(output.TakeLoss(), 4u);
  EXPECT_EQ(output.TakeLoss(), 0u);
  EXPECT_EQ(test::ReadWholeFile(folder.Path("file")), "shown again");
}

TEST_F(OutputTest, MayEndInsideOnProgress) {
  std::unique_ptr<Output> output;
  int calls = 0;
  std::string written = "the captures outlive the Output";
  output = std::make_unique<Output>(loop, pipe.write_end.get(), [&, written] {
    output.reset();
    calls += written.empty() ? 0 : 1;
  });
  output->Write("text");
  output->Write(" and more");
  ASSERT_TRUE(loop.RunUntil([&] { return calls > 0; }, test::kLong));
  EXPECT_EQ(calls, 1);
}

TEST_F(OutputTest, MayEndWhileAWriteIsUnderWay) {
  test::FillPipe(pipe.write_end.get());
  int progress = 0;
  auto output = std::make_unique<Output>(loop, pipe.write_end.get(), [&] { progress += 1; });
  output->Write("stuck");
  test::RunReadyCallbacks(loop);
  output.reset();
  pipe.read_end.Reset();
  EXPECT_FALSE(loop.RunUntil([&] { return progress > 0; }, milliseconds(10)));
}

}  // namespace
}  // namespace rankrun
