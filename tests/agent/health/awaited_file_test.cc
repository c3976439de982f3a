#include "agent/health/awaited_file.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <pty.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "agent/health/condition.h"
#include "agent/health/process_facts.h"

namespace rankrun::agent {
namespace {

using ::testing::HasSubstr;

// A child process that runs `body`; the destructor kills it.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    pause();
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  pid_t pid() const { return pid_; }
  std::string name() const { return ProcessInWords(pid_); }

  // Returns its condition in words, once its main thread waits in `call`.
  std::string Condition(const std::string& call) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      AwaitedFiles files;
      const WorkerSample sample{.pid = pid_, .process = ReadProcessFacts(pid_, files)};
      const ProcessFacts& facts = *sample.process;
      if (facts.call_name == call && !facts.wait_channel.empty()) {
        return ConditionInWords(sample, ConditionOf(sample, {}));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return "no wait in " + call;
  }

 private:
  pid_t pid_;
};

struct AwaitedFileTest : testing::Test {
  AwaitedFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "awaited.XXXXXX").string();
    folder = mkdtemp(name.data());
    fifo = folder + "/fifo";
    mkfifo(fifo.c_str(), 0600);
  }
  ~AwaitedFileTest() override { std::filesystem::remove_all(folder); }
  std::string folder;
  std::string fifo;
  char byte = 0;
};

TEST_F(AwaitedFileTest, AFifoThatIsOpenedForReading) {
  Child child([&] { open(fifo.c_str(), O_RDONLY); });
  EXPECT_EQ(child.Condition("openat"),
            "is opening " + fifo + " (openat), a FIFO that no process has open for writing");
}

TEST_F(AwaitedFileTest, ARelativePathIsThatOfItsFolder) {
  Child child([&] {
    const int directory = open(folder.c_str(), O_PATH);
    openat(directory, "fifo", O_WRONLY);
  });
  EXPECT_EQ(child.Condition("openat"),
            "is opening " + fifo + " (openat), a FIFO that no process has open for reading");
  Child other([&] {
    if (chdir(folder.c_str()) == 0) open("fifo", O_WRONLY);
  });
  EXPECT_THAT(other.Condition("openat"), HasSubstr("opening " + fifo + " (openat), a FIFO"));
}

TEST_F(AwaitedFileTest, AFifoThatIsReadAndItsWriter) {
  Child writer([&] { open(fifo.c_str(), O_RDWR); });
  EXPECT_THAT(writer.Condition("pause"), HasSubstr("pause"));
  Child reader([&] {
    if (read(open(fifo.c_str(), O_RDONLY), &byte, 1) < 0) _exit(1);
  });
  EXPECT_EQ(reader.Condition("read"),
            "is reading " + fifo + " (read), a FIFO, from " + writer.name());
}

TEST_F(AwaitedFileTest, APipeAndTheProcessAtItsOtherEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  Child reader([&] {
    close(ends[1]);
    if (read(ends[0], &byte, 1) < 0) _exit(1);
  });
  Child writer([&] { close(ends[0]); });
  close(ends[0]);
  close(ends[1]);
  EXPECT_THAT(reader.Condition("read"), HasSubstr("(read), from " + writer.name()));
}

TEST_F(AwaitedFileTest, TheCommandOfAShell) {
  Child shell([&] {
    const pid_t command = fork();
    if (command == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      open(fifo.c_str(), O_RDONLY);
    }
    wait4(command, nullptr, 0, nullptr);
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string text;
  while (text.find("FIFO") == std::string::npos && std::chrono::steady_clock::now() < deadline) {
    text = shell.Condition("wait4");
  }
  EXPECT_EQ(text, "is waiting for a child process (wait4), agent_tests, which is opening " + fifo +
                      " (openat), a FIFO that no process has open for writing");
}

TEST_F(AwaitedFileTest, ATerminal) {
  int master = -1, terminal = -1;
  ASSERT_EQ(openpty(&master, &terminal, nullptr, nullptr, nullptr), 0);
  const std::string name = ttyname(terminal);
  Child reader([&] {
    if (read(terminal, &byte, 1) < 0) _exit(1);
  });
  EXPECT_EQ(reader.Condition("read"), "is reading " + name + " (read), a terminal");
  close(master);
  close(terminal);
}

TEST_F(AwaitedFileTest, ALockAndItsHolder) {
  const std::string path = folder + "/lock";
  const int held = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  Child waiter([&] { flock(open(path.c_str(), O_RDWR), LOCK_EX); });
  EXPECT_EQ(waiter.Condition("flock"), "is waiting for the lock of " + path + " (flock), which " +
                                           ProcessInWords(getpid()) + " holds");
  close(held);
}

TEST_F(AwaitedFileTest, ALockOfARangeAndItsHolder) {
  const std::string path = folder + "/range";
  const int held = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  struct flock range = {};
  range.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(held, F_SETLK, &range), 0);
  Child waiter([&] { fcntl(open(path.c_str(), O_RDWR), F_SETLKW, &range); });
  EXPECT_EQ(waiter.Condition("fcntl"), "is waiting for the lock of " + path + " (fcntl), which " +
                                           ProcessInWords(getpid()) + " holds");
  close(held);
}

TEST_F(AwaitedFileTest, AConnectionAndItsOtherEnd) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, generic, size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, generic, &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  Child client([&] {
    const int own = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(own, generic, size) == 0) recv(own, &byte, 1, 0);
  });
  EXPECT_EQ(client.Condition("recvfrom"),
            "is waiting for a connection (recvfrom), to 127.0.0.1:" + port);
  Child server([&] {
    close(accept(listener, nullptr, nullptr));
    accept(listener, nullptr, nullptr);
  });
  EXPECT_THAT(server.Condition("accept"), HasSubstr(", at port " + port));
  close(listener);
}

}  // namespace
}  // namespace rankrun::agent
