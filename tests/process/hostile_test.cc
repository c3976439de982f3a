// Strangers at the port of a running job.

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "base/fd.h"
#include "base/write_all.h"
#include "tests/base/net/two_hosts.h"
#include "tests/base/uv/loopback.h"
#include "tests/paths.h"
#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;

// The first bytes of a node; the version of its protocol follows.
const std::string kPreamble("RKRN\r\n\0", 8);

struct HostileTest : NodesTest {
  void SetUp() override {
    NodesTest::SetUp();
    signal(SIGPIPE, SIG_IGN);
    job.push_back(SecretFile("secret", "the secret of this job"));
  }
  std::string SecretFile(const std::string& name, const std::string& secret) const {
    std::ofstream(folder.Path(name)) << secret;
    chmod(folder.Path(name).c_str(), 0600);
    return "--secret-file=" + folder.Path(name);
  }
  // Dials the coordinator and sends `bytes`.
  Fd Dial(const std::string& bytes) const {
    Fd fd = test::ConnectTo(test::Loopback(static_cast<uint16_t>(std::stoi(port))));
    if (fd) (void)TryWriteAll(fd.get(), bytes);  // the job may have closed it
    return fd;
  }
  bool IsListening() const { return bool(Dial("")); }
  void ExpectAllSucceed() const {
    for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
  }
};

TEST_F(HostileTest, SilenceLocksNobodyOut) {
  job[0] = "--nnodes=3";
  in_child = [] {
    rlimit few{128, 128};
    setrlimit(RLIMIT_NOFILE, &few);
  };
  StartHost({"-n1"}, "exit 0");
  in_child = {};
  ASSERT_TRUE(WaitFor([&] { return IsListening(); })) << Errors();
  std::vector<Fd> strangers;
  for (int i = 0; i < 150; ++i) {
    strangers.push_back(Dial(""));
    strangers.push_back(Dial(kPreamble.substr(0, 3)));
    strangers.push_back(Dial(kPreamble + "\2"));
  }
  for (int i = 0; i < 2; ++i) StartGuest({"-n1"}, "exit 0");
  ExpectAllSucceed();
}

TEST_F(HostileTest, StrangersDoNotDisturbARunningJob) {
  job[0] = "--nnodes=3";
  const std::string script = Stamped("until [ -e end ]; do sleep 0.01; done");
  StartHost({"-n1"}, script);
  for (int i = 0; i < 2; ++i) StartGuest({"-n1"}, script);
  ASSERT_TRUE(WaitForUp(3, 0)) << Errors();
  std::vector<Fd> strangers;
  for (int i = 0; i < 100; ++i) {
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\n\r\n"), kPreamble + "\7", kPreamble + "\1",
          kPreamble + "\2" + std::string("\0\0\0\5hello", 9), kPreamble + "\2\xFF\xFF\xFF\xFF",
          std::string(1000, '\0')}) {
      strangers.push_back(Dial(bytes));
    }
  }
  Touch("end");
  ExpectAllSucceed();
  EXPECT_EQ(Count(Read("up"), "\n"), 3) << Read("up");
}

// A stranger with another secret claims the place of the coordinator's node.
TEST_F(HostileTest, AStrangerCannotTakeRankZero) {
  StartHost({"-n1"}, "exit 0");
  ASSERT_TRUE(WaitFor([&] { return IsListening(); })) << Errors();
  std::vector<std::string> honest = std::exchange(job, {"--nnodes=2", "--node-timeout=10"});
  job.push_back(SecretFile("another", "the secret of a stranger"));
  conf = ",join_timeout=3";  // it keeps dialling when the job is over
  Job& stranger = StartGuest({"-n1", "--node-rank=0"}, "touch ran");
  ASSERT_TRUE(stranger.WaitForErr("wrong job secret")) << Errors();
  job = honest;
  conf.clear();
  StartGuest({"-n1", "--node-rank=0"}, "exit 0");
  EXPECT_EQ(nodes[2]->Wait(), Code(0)) << Errors();
  EXPECT_EQ(nodes[0]->Wait(), Code(0)) << Errors();
  EXPECT_EQ(stranger.Wait(), Code(201)) << Errors();
  EXPECT_NE(access(folder.Path("ran").c_str(), F_OK), 0);
}

// A node without a secret learns neither the name of the job nor that of a node.
TEST_F(HostileTest, ARefusalTellsNothingOfTheJob) {
  StartHost({"-n1", "--rdzv-id=secret-project"}, "exit 0");
  ASSERT_TRUE(WaitFor([&] { return IsListening(); })) << Errors();
  job = {"--nnodes=2", "--node-timeout=10"};
  Job& stranger = StartGuest({"-n1", "--rdzv-id=guess"}, "exit 0");
  EXPECT_EQ(stranger.Wait(), Code(201)) << Errors();
  EXPECT_THAT(stranger.Err(), HasSubstr("the job there has a secret, this node has none"));
  EXPECT_THAT(stranger.Err(), ::testing::Not(HasSubstr("secret-project")));
  nodes[0]->Signal(SIGINT);
}

// The memory of an agent contains the secret; a core file would keep it.
TEST_F(HostileTest, AnAgentWithASecretLeavesNoCoreFile) {
#ifdef RANKRUN_SANITIZED
  GTEST_SKIP() << "sanitizers set the limit of core files themselves";
#endif
  constexpr rlim_t kCoreBytes = 1 << 20;
  in_child = [] {
    rlimit core{kCoreBytes, kCoreBytes};
    setrlimit(RLIMIT_CORE, &core);
  };
  const std::string script =
      Stamped("ulimit -c >limit.$RANK; until [ -e end ]; do sleep 0.01; done");
  Job& host = StartHost({"-n1"}, script);
  StartGuest({"-n1"}, script);
  ASSERT_TRUE(WaitFor([&] {
    return Read("limit.0").ends_with("\n") && Read("limit.1").ends_with("\n");
  })) << Errors();
  std::string limits = ReadText("/proc/" + std::to_string(AgentOf(host)) + "/limits");
  EXPECT_THAT(limits, ::testing::ContainsRegex("Max core file size +1 "));
  for (const char* name : {"limit.0", "limit.1"}) {
    EXPECT_EQ(std::stoul(Read(name)) * 512, kCoreBytes) << "the workers have the user's limit";
  }
  Touch("end");
  ExpectAllSucceed();
}

// Hosts 1 and 2, network namespaces with the addresses 10.77.0.1 and 10.77.0.2, run a node each. A
// worker of host 1 has the store. Other users of host 2 are strangers.
struct TwoHostsTest : HostileTest {
  static constexpr const char* kStranger = "65534";

  void SetUp() override {
    HostileTest::SetUp();
    if (hosts == nullptr) GTEST_SKIP() << "network namespaces are not permitted here";
    for (size_t host : {0u, 1u}) {
      in_child = Enter(host);
      Start({"-n1", "--rdzv-backend=c10d", "--rdzv-endpoint=10.77.0.1:" + port,
             "--node-rank=" + std::to_string(host)},
            "[ $RANK = 0 ] || " + PlanterCommand("$MASTER_ADDR $MASTER_PORT legitimate") +
                " >worker\necho $MASTER_ADDR $MASTER_PORT >store.$RANK\n"
                "until [ -e end ]; do sleep 0.01; done");
    }
    ASSERT_TRUE(WaitFor([&] { return Read("store.1").ends_with("\n"); })) << Errors();
    EXPECT_EQ(Read("worker"), "nothing\n") << "the worker of host 2 is a client";
    std::istringstream(Read("store.1")) >> store_host >> store_port;
  }
  void TearDown() override {
    if (IsSkipped()) return;
    Job check({.arguments = {store_host, store_port, "check"},
               .program = test::Program("planter"),
               .in_child = Enter(0)});
    EXPECT_EQ(check.Wait(), Code(0)) << check.Err();
    EXPECT_EQ(check.Out(), "nothing\n") << "a stranger has planted a key";
    Touch("end");
    ExpectAllSucceed();
  }
  static std::string PlanterCommand(const std::string& arguments) {
    return test::Program("planter") + " " + arguments;
  }
  std::function<void()> Enter(size_t host) const {
    return [this, host] {
      if (!hosts->Enter(host)) _exit(98);
    };
  }
  std::unique_ptr<test::TwoHosts> hosts = test::TwoHosts::Make();
  std::string store_host, store_port;
};

TEST_F(TwoHostsTest, AStrangerOnTheHostOfAMemberPlantsNoKeyByLibrankrun) {
  Job stranger({.arguments = {store_host, store_port, "planted", kStranger},
                .program = test::Program("planter"),
                .in_child = Enter(1)});
  EXPECT_EQ(stranger.Wait(milliseconds(60'000)), Code(1)) << Errors();
  EXPECT_THAT(stranger.Err(), HasSubstr("closed the connection"));
  EXPECT_TRUE(nodes[0]->WaitForErr("it belongs to user 65534")) << Errors();
}

// Without an answer to wait for, the stranger may be gone when its node is asked.
TEST_F(TwoHostsTest, AStrangerThatIsGonePlantsNoKey) {
  Job stranger({.arguments = {"-c",
                              "import os, socket, sys\nos.setuid(int(sys.argv[3]))\n"
                              "s = socket.create_connection((sys.argv[1], sys.argv[2]))\n"
                              "word = lambda t: len(t).to_bytes(8, 'little') + t\n"
                              "s.sendall(bytes.fromhex('00cef7853c') + b'\\1'\n"
                              "          + word(b'/planted') + word(b'yes'))\n",
                              store_host, store_port, kStranger},
                .program = "/usr/bin/python3",
                .in_child = Enter(1)});
  EXPECT_EQ(stranger.Wait(), Code(0)) << stranger.Err();
  EXPECT_TRUE(nodes[0]->WaitForErr("closed the connection from 10.77.0.2")) << Errors();
}

// The job's user has the same ports on host 2, in a connection to the first address of host 1. The
// stranger is gone, and the store has read its request, when its node is asked.
TEST_F(TwoHostsTest, AStrangerWithThePortsOfAClientPlantsNoKey) {
  KillAgent(*nodes[1], SIGSTOP);
  Job stranger(
      {.arguments = {"-c",
                     R"(
import fcntl, os, socket, struct, sys, termios
host, port, user = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sockets = open('/proc/%s/net/tcp' % sys.argv[4])
own = socket.socket()
own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
own.connect((host, port))
os.setuid(user)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(own.getsockname())
s.connect(('10.77.0.3', port))
word = lambda t: len(t).to_bytes(8, 'little') + t
s.sendall(bytes.fromhex('00cef7853c') + b'\1' + word(b'/planted') + word(b'yes'))
def is_read():
  sockets.seek(0)
  ends = [line.split() for line in sockets if ' 03004D0A:%04X ' % port in line]
  has_come = fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)) == bytes(4)
  return has_come and any(e[4].endswith(':00000000') and e[9] != '0' for e in ends)
while not is_read(): pass
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
s.close()
print('gone', flush=True)
own.recv(1)
)",
                     store_host, store_port, kStranger, std::to_string(AgentOf(*nodes[0]))},
       .program = "/usr/bin/python3",
       .in_child = Enter(1)});
  EXPECT_TRUE(stranger.WaitForOut("gone")) << stranger.Err();
  KillAgent(*nodes[1], SIGCONT);
  EXPECT_TRUE(nodes[0]->WaitForErr("closed the connection from 10.77.0.2")) << Errors();
}

TEST_F(TwoHostsTest, AStrangerOnTheHostOfAMemberPlantsNoKeyByPyTorch) {
  const std::string python = test::InSource("build/venv/bin/python");
  if (access(python.c_str(), X_OK) != 0) GTEST_SKIP() << "PyTorch is missing";
  Job stranger({.arguments = {"-c",
                              "import datetime, os, sys\n"
                              "from torch.distributed import TCPStore\n"
                              "os.setuid(int(sys.argv[3]))\n"
                              "TCPStore(sys.argv[1], int(sys.argv[2]), is_master=False,\n"
                              "         timeout=datetime.timedelta(seconds=5)\n"
                              "         ).set('planted', 'yes')\n",
                              store_host, store_port, kStranger},
                .program = python,
                .in_child = Enter(1)});
  EXPECT_EQ(stranger.Wait(milliseconds(100'000)), Code(1)) << Errors();
  EXPECT_THAT(stranger.Err(), HasSubstr("DistNetworkError"));
  EXPECT_TRUE(nodes[0]->WaitForErr("it belongs to user 65534")) << Errors();
}

// Programs of the job's user that the job has not started are clients, as on the store's host.
TEST_F(TwoHostsTest, AProgramOfTheJobsUserOnTheHostOfAMemberIsServed) {
  Job client({.arguments = {store_host, store_port, "from-a-shell"},
              .program = test::Program("planter"),
              .in_child = Enter(1)});
  EXPECT_EQ(client.Wait(), Code(0)) << client.Err();
  EXPECT_EQ(client.Out(), "nothing\n");
}

}  // namespace
}  // namespace rankrun::testing
