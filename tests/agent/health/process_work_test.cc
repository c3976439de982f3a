#include "agent/health/process_work.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "agent/health/connections.h"
#include "agent/health/process_facts.h"
#include "base/fd.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

constexpr uint16_t kNoPort = 0;

// A child process that runs `body`; the destructor kills its process group.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ != 0) return;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(0);
  }
  ~Child() {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

WorkerSample Read(pid_t pid, uint16_t store_port = kNoPort) {
  AwaitedFiles files;
  std::vector<WorkerSample> samples = {{.pid = pid, .process = ReadProcessFacts(pid, files)}};
  AddWork(samples, store_port);
  return samples.front();
}

bool WaitFor(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// Both ends of a connection over the loopback interface.
struct Pair {
  Fd server, client;
  uint16_t port = 0;  // of the server
};

Pair Connect() {
  Fd listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  Pair pair;
  if (bind(listener.get(), generic, size) != 0 || listen(listener.get(), 1) != 0) return pair;
  getsockname(listener.get(), generic, &size);
  pair.port = ntohs(address.sin_port);
  pair.client = Fd(socket(AF_INET, SOCK_STREAM, 0));
  if (connect(pair.client.get(), generic, size) != 0) return pair;
  pair.server = Fd(accept(listener.get(), nullptr, nullptr));
  return pair;
}

void Receive(int fd) {
  std::array<char, 1> byte;
  if (recv(fd, byte.data(), byte.size(), 0) < 0) _exit(1);
}

TEST(ProcessWorkTest, BothEndsOfAConnectionHaveOneIdAndTheWaiterShowsIt) {
  if (!ReadConnections()) GTEST_SKIP() << "the kernel shows no connections";
  Pair pair = Connect();
  ASSERT_TRUE(pair.server);
  Child waiter([&] { Receive(pair.server.get()); });
  EXPECT_TRUE(WaitFor([&] { return Read(waiter.pid()).work->awaited_connection != 0; }));
  const WorkFacts here = *Read(getpid()).work;
  const uint64_t id = Read(waiter.pid()).work->awaited_connection;
  EXPECT_EQ(std::ranges::count(here.connections, id, &PeerConnection::id), 1);
}

TEST(ProcessWorkTest, ConnectionsInAnotherNetworkAreUnknown) {
  if (!ReadConnections()) GTEST_SKIP() << "the kernel shows no connections";
  EXPECT_TRUE(Read(getpid()).work->knows_connections);
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  Child worker([&] {
    const Child isolated([&] {
      const char has_own = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 'y' : 'n';
      if (write(ready[1], &has_own, 1) == 1) pause();
    });
    pause();
  });
  char has_own = 0;
  ASSERT_EQ(read(ready[0], &has_own, 1), 1);
  if (has_own != 'y') GTEST_SKIP() << "no network namespaces here";
  EXPECT_FALSE(Read(worker.pid()).work->knows_connections);
}

TEST(ProcessWorkTest, DataIsSeen) {
  if (!ReadConnections()) GTEST_SKIP() << "the kernel shows no connections";
  Pair pair = Connect();
  ASSERT_TRUE(pair.server);
  Child peer([] { pause(); });
  const uint64_t before = Read(peer.pid()).work->received_bytes;
  ASSERT_EQ(send(pair.client.get(), "12345", 5, 0), 5);
  EXPECT_TRUE(WaitFor([&] { return Read(peer.pid()).work->received_bytes >= before + 5; }));
}

TEST(ProcessWorkTest, ConnectionsToTheStoreAreLeftOut) {
  Pair pair = Connect();
  ASSERT_TRUE(pair.server);
  Child waiter([&] {
    pair.client.Reset();
    Receive(pair.server.get());
  });
  Child other([&] { pair.server.Reset(), pause(); });
  EXPECT_TRUE(Read(waiter.pid(), pair.port).work->connections.empty());
  EXPECT_TRUE(Read(other.pid(), pair.port).work->connections.empty());
}

TEST(ProcessWorkTest, WorkOfAProcessBelowIsSeen) {
  Child worker([] {
    if (fork() == 0) {
      for (std::atomic<int> i = 0;; ++i) {
      }
    }
    pause();
  });
  EXPECT_TRUE(WaitFor([&] {
    const WorkFacts work = *Read(worker.pid()).work;
    return work.cpu_time > milliseconds(20) && work.main_cpu_time > milliseconds(20);
  }));
}

TEST(ProcessWorkTest, LinesOfAMainThreadAndItsWakesAreSeen) {
  std::array<int, 2> go;
  ASSERT_EQ(pipe(go.data()), 0);
  Child worker([&] {
    Fd file(open("/dev/null", O_WRONLY));
    for (char byte = 0; read(go[0], &byte, 1) == 1;) {
      if (write(file.get(), "step\n", 5) != 5) _exit(1);
    }
  });
  ASSERT_TRUE(WaitFor([&] { return Read(worker.pid()).process->call == CallKind::kFile; }));
  const WorkFacts before = *Read(worker.pid()).work;
  ASSERT_EQ(write(go[1], "x", 1), 1);
  EXPECT_TRUE(WaitFor([&] {
    const WorkFacts now = *Read(worker.pid()).work;
    return now.written_bytes == before.written_bytes + 5 && now.wakes > before.wakes;
  }));
  close(go[0]);
  close(go[1]);
}

TEST(ProcessWorkTest, AWorkerThatHasNotStartedOrHasEndedHasNoWork) {
  std::vector<WorkerSample> samples = {{.pid = 0}, {.pid = getpid(), .has_ended = true}};
  AddWork(samples, kNoPort);
  EXPECT_FALSE(samples[0].work);
  EXPECT_FALSE(samples[1].work);
}

TEST(ConnectionsTest, TheIdDoesNotDependOnTheOrderOfTheEnds) {
  const ConnectionEnd a{.address = {1, 2, 3}, .port = 4}, b{.address = {1, 2, 3}, .port = 5};
  EXPECT_EQ(ConnectionId(a, b), ConnectionId(b, a));
  EXPECT_NE(ConnectionId(a, b), ConnectionId(a, a));
}

}  // namespace
}  // namespace rankrun::agent
