// `rankctl store serve`, started as by a user.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>

#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A client that sends a text and then waits.
class Stranger {
 public:
  Stranger(const ServedStore& server, const std::string& words)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(server.port())));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    send(fd_.get(), words.data(), words.size(), MSG_NOSIGNAL);
  }

  // Returns whether the server closes the connection before the deadline.
  bool IsClosed(milliseconds deadline = milliseconds(20'000)) const {
    return WaitFor(
        [this] {
          char byte;
          ssize_t count = recv(fd_.get(), &byte, 1, MSG_DONTWAIT);
          return count == 0 || (count < 0 && errno == ECONNRESET);
        },
        deadline);
  }

 private:
  Fd fd_;
};

TEST(RankctlServeTest, SaysWhereItListensAndServes) {
  ServedStore server;
  EXPECT_EQ(server.job().Out(), "rankctl: store at " + server.address() + "\n");
  EXPECT_THAT(server.address(), StartsWith("127.0.0.1:"));
  EXPECT_EQ(server.job().Err(), "");
}

TEST(RankctlServeTest, EndsByTheSignalThatAsksForTheEnd) {
  for (int number : {SIGTERM, SIGINT}) {
    ServedStore server;
    server.job().Signal(number);
    EXPECT_EQ(server.job().Wait(), KilledBy(number));
    EXPECT_EQ(server.job().Err(), "");
  }
}

TEST(RankctlServeTest, AnIgnoredInterruptStaysIgnored) {
  ServedStore server({}, [] { signal(SIGINT, SIG_IGN); });
  server.job().Signal(SIGINT);
  server.job().Signal(SIGTERM);
  EXPECT_EQ(server.job().Wait(), KilledBy(SIGTERM));
}

TEST(RankctlServeTest, ThePortIsWrittenToAFileOnceItListens) {
  ScratchFolder folder;
  std::string file = folder.Path("port");
  ServedStore server({"--port-file", file});
  EXPECT_EQ("127.0.0.1:" + ReadText(file), server.address() + "\n");
}

TEST(RankctlServeTest, APortFileOfAnEarlierStoreIsGoneWhenItCannotListen) {
  ServedStore first;
  ScratchFolder folder;
  std::string file = folder.Script("port", "of an earlier store");
  Job second({.arguments = {"store", "serve", "--port", first.port(), "--port-file", file},
              .program = kRankctl});
  EXPECT_EQ(second.Wait(), Code(1));
  EXPECT_EQ(second.Err(), "rankctl: start a store server: listen on " + first.address() +
                              ": Address already in use\n");
  EXPECT_EQ(ReadText(file), "");
}

TEST(RankctlServeTest, WhoOpensAllInterfacesIsWarned) {
  for (const char* host : {"0.0.0.0", "all"}) {
    Job job({.arguments = {"store", "serve", "--port=0", "--host", host}, .program = kRankctl});
    EXPECT_TRUE(job.WaitForOut("\n")) << host;
    EXPECT_EQ(
        job.Err(),
        "rankctl: warning: the store listens on all interfaces: any host that reaches its port "
        "may read and change it; --allow restricts access\n");
  }
}

TEST(RankctlServeTest, OnlyThoseAllowedMayConnect) {
  ServedStore server({"--host=0.0.0.0", "--allow", "10.0.0.0/8", "--allow=fd00::/8"});
  EXPECT_EQ(server.job().Err(), "");
  Job get({.arguments = {"store", "get", "--now", "--timeout=0", "--store",
                         "127.0.0.1:" + server.port(), "k"},
           .program = kRankctl});
  EXPECT_EQ(get.Wait(), Code(3));
  EXPECT_TRUE(server.job().WaitForErr("\n"));
  EXPECT_THAT(server.job().Err(), HasSubstr("rankctl: warning: store: "));
}

TEST(RankctlServeTest, ARequestThatStaysHalfSentIsClosed) {
  ServedStore server({"--half-request-timeout", "0.05"});
  Stranger stranger(server, std::string("\0\xce\xf7\x85\x3c\0half", 10));
  EXPECT_TRUE(stranger.IsClosed());
}

TEST(RankctlServeTest, OneAddressMayBeNamedTwice) {
  ServedStore server({"--host", "127.0.0.1", "--host=127.0.0.1", "--host", "127.0.0.2"});
  EXPECT_THAT(server.address(), StartsWith("127.0.0.1:"));
}

TEST(RankctlServeTest, WrongFlagsEndWithTwoAndOneLine) {
  struct Case {
    std::vector<std::string> arguments;
    std::string error;
  };
  for (const Case& each : std::vector<Case>{
           {{"--max-value", "big"},
            "--max-value: want a size, as 512, 8K, 64M, 1G or 2T, got \"big\""},
           {{"--max-connections=0"},
            "--max-connections: want a whole number from 1 to 10000000, got \"0\""},
           {{"--port", "65536"}, "--port: want a port number from 0 to 65535, got \"65536\""},
           {{"--prt", "1"}, "unknown flag --prt; did you mean --port?"},
           {{"--allow", "10.0.0.7/8"},
            "--allow: \"10.0.0.7/8\" is not a range of addresses: the address has bits set after "
            "its "
            "first "
            "8; want for example 10.0.0.0/8, fd00::/8 or 10.0.0.7"},
           {{"--half-request-timeout=0"}, "--half-request-timeout: want more than 0 seconds"},
           {{"key"}, "1 operand given; usage: rankctl store serve [flags]"}}) {
    std::vector<std::string> arguments{"store", "serve"};
    arguments.insert(arguments.end(), each.arguments.begin(), each.arguments.end());
    Job job({.arguments = arguments, .program = kRankctl});
    EXPECT_EQ(job.Wait(), Code(2));
    EXPECT_EQ(job.Err(), "rankctl: " + each.error + "\n");
    EXPECT_THAT(job.Out(), IsEmpty());
  }
}

TEST(RankctlServeTest, ALimitThatCannotWorkIsRefusedBeforeThePortFileIsTouched) {
  for (std::string flag : {"--max-key", "--max-value"}) {
    ScratchFolder folder;
    std::string file = folder.Script("port", "of an earlier store");
    Job job({.arguments = {"store", "serve", "--port=0", "--port-file", file, flag + "=2G"},
             .program = kRankctl});
    EXPECT_EQ(job.Wait(), Code(2));
    EXPECT_EQ(job.Err(), "rankctl: " + flag + ": want at most 1G, got \"2G\"\n");
    EXPECT_NE(ReadText(file), "");
  }
}

TEST(RankctlServeTest, ItsMessagesAreRankctls) {
  ServedStore server;
  Stranger stranger(server, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(server.job().WaitForErr("\n"));
  EXPECT_THAT(server.job().Err(), StartsWith("rankctl: warning: store: closed the connection"));
}

TEST(RankctlServeTest, AFullDiskUnderItsOutputEndsIt) {
  Job job(
      {.arguments = {"-c", kRankctl + " store serve --port 0 >/dev/full"}, .program = "/bin/sh"});
  EXPECT_EQ(job.Wait(), Code(1));
  EXPECT_EQ(job.Err(), "rankctl: standard output: write: No space left on device\n");
}

}  // namespace
}  // namespace rankrun::testing
