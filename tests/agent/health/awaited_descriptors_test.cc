#include "agent/health/awaited_descriptors.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "agent/health/waiting_call.h"
#include "agent/process/descendants.h"
#include "base/fd.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using Descriptors = std::optional<std::vector<int>>;

class AwaitedDescriptorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    read_end_.Reset(ends[0]);
    write_end_.Reset(ends[1]);
  }

  // Runs `body` in a child, and looks at its main thread until that waits for `wanted`.
  bool Becomes(const Descriptors& wanted, const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(0);
    }
    const bool found = test::WaitFor([&] {
      const WaitingCall call = ParseCall(ReadOfProcess(child, "syscall"));
      return call.kind != CallKind::kNone && AwaitedDescriptors(child, call) == wanted;
    });
    kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    return found;
  }
  void Poll() const {
    pollfd polled{.fd = read_end_.get(), .events = POLLIN, .revents = 0};
    poll(&polled, 1, -1);
  }

  Fd read_end_;
  Fd write_end_;
};

TEST_F(AwaitedDescriptorsTest, AreThoseOfAPoll) {
  EXPECT_TRUE(Becomes(std::vector<int>{read_end_.get()}, [&] { Poll(); }));
}

TEST_F(AwaitedDescriptorsTest, AreThoseOfAnEpoll) {
  EXPECT_TRUE(Becomes(std::vector<int>{read_end_.get()}, [&] {
    const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(epoll.get(), EPOLL_CTL_ADD, read_end_.get(), &event);
    epoll_wait(epoll.get(), &event, 1, -1);
  }));
}

TEST_F(AwaitedDescriptorsTest, AreThatOfARead) {
  EXPECT_TRUE(Becomes(std::vector<int>{read_end_.get()}, [&] {
    char byte = 0;
    static_cast<void>(!read(read_end_.get(), &byte, 1));
  }));
}

TEST_F(AwaitedDescriptorsTest, AreThoseOfAThreadForWhoseEndTheMainThreadWaits) {
  EXPECT_TRUE(Becomes(std::vector<int>{read_end_.get()},
                      [&] { std::thread([&] { std::thread([&] { Poll(); }).join(); }).join(); }));
}

TEST_F(AwaitedDescriptorsTest, AreNoneOfAThreadBesideTheMainThread) {
  EXPECT_TRUE(Becomes(std::vector<int>(), [&] {
    std::thread beside([&] { Poll(); });
    pause();
    beside.join();
  }));
  EXPECT_TRUE(Becomes(std::vector<int>(), [&] {
    std::thread beside([&] { Poll(); });
    sleep(1'000);
    beside.join();
  }));
}

}  // namespace
}  // namespace rankrun::agent
