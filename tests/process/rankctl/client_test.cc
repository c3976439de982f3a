// The client commands of `rankctl store`, with `rankctl store serve` and with
// servers that break the protocol.

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "store/clients/tcp_store.h"
#include "tests/process/rankctl.h"
#include "tests/store/clients/fake_server.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

// Exit code and output of one command.
struct Outcome {
  int code;
  std::string out;
  std::string err;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << "exit code " << outcome.code << ", stdout \"" << outcome.out << "\", stderr \""
             << outcome.err << "\"";
}

Outcome OutcomeOf(Job& job) {
  auto exit = job.Wait();
  EXPECT_TRUE(exit && !exit->signaled);
  return {exit && !exit->signaled ? exit->value : -1, job.Out(), job.Err()};
}

Job::Options Command(const std::string& address, Words arguments) {
  arguments.insert(arguments.begin(), "store");
  return {.arguments = std::move(arguments),
          .variables = {{"RANKRUN_STORE", address}},
          .program = kRankctl};
}

struct RankctlClientTest : ::testing::Test {
  Outcome Run(Words arguments, const std::string& stdin_text = "") {
    Job::Options options = Command(server.address(), std::move(arguments));
    options.stdin_text = stdin_text;
    Job job(options);
    return OutcomeOf(job);
  }
  Outcome Done(const std::string& out = "") { return {0, out, ""}; }
  Outcome No(const std::string& why) { return {1, "", "rankctl: " + why + "\n"}; }

  ServedStore server;
};

TEST_F(RankctlClientTest, AValueComesBackByteForByte) {
  std::string bytes("\0a\n\xff\x1b", 5);
  EXPECT_EQ(Run({"set", "k", "-"}, bytes), Done());
  EXPECT_EQ(Run({"get", "k"}), Done(bytes));
  EXPECT_EQ(Run({"set", "k", ""}), Done());
  EXPECT_EQ(Run({"get", "k"}), Done(""));
}

TEST_F(RankctlClientTest, GetWaitsForTheKey) {
  Job get(Command(server.address(), {"get", "later"}));
  Job stats(Command(server.address(), {"get", "--now", "later"}));
  EXPECT_EQ(OutcomeOf(stats), No("key later: not set"));
  EXPECT_EQ(Run({"set", "later", "v"}), Done());
  EXPECT_EQ(OutcomeOf(get), Done("v"));
}

TEST_F(RankctlClientTest, WhatDidNotComeInTimeIsNamed) {
  EXPECT_EQ(Run({"get", "--timeout=0.05", "k"}), No("key k: not set within 0.050 s"));
  Run({"set", "b", ""});
  EXPECT_EQ(Run({"wait", "--timeout", "0.05", "a", "b", "c\nd"}),
            No("keys a, c\\nd: not set within 0.050 s"));
  EXPECT_EQ(Run({"wait", "b"}), Done());
}

TEST_F(RankctlClientTest, AfterTwoDashesKeysAndValuesMayLookLikeFlags) {
  EXPECT_EQ(Run({"set", "--", "-k", "-v"}), Done());
  EXPECT_EQ(Run({"get", "--", "-k"}), Done("-v"));
  EXPECT_EQ(Run({"set", "--", "--raw", "--"}), Done());
  EXPECT_EQ(Run({"get", "--now", "--", "--raw"}), Done("--"));
  EXPECT_EQ(Run({"del", "--", "--raw", "k"}), No("key k: not set"));
  EXPECT_EQ(Run({"list"}), Done("-k\n"));
}

TEST_F(RankctlClientTest, SetIfComparesFirst) {
  EXPECT_EQ(Run({"set", "--if", "", "k", "1"}), Done());
  EXPECT_EQ(Run({"set", "k", "2", "--if=1"}), Done());
  EXPECT_EQ(Run({"set", "--if", "1", "k", "3"}), No("key k: the value is \"2\", want \"1\""));
  EXPECT_EQ(Run({"get", "k"}), Done("2"));
  EXPECT_EQ(Run({"set", "--if=2", "k", "2"}), Done());
  EXPECT_EQ(Run({"set", "--if", "x", "none", "y"}), No("key none: not set, want \"x\""));
  EXPECT_EQ(Run({"set", "--if", "x", "none", "x"}), No("key none: not set, want \"x\""));
}

TEST_F(RankctlClientTest, AddPrintsTheSum) {
  EXPECT_EQ(Run({"add", "n"}), Done("1\n"));
  EXPECT_EQ(Run({"add", "n", "-5"}), Done("-4\n"));
  EXPECT_EQ(Run({"add", "n", "1.5"}),
            (Outcome{2, "", "rankctl: N: want a whole number of 64 bits, got \"1.5\"\n"}));
  Run({"set", "text", "a\nb"});
  EXPECT_EQ(Run({"add", "text"}), No("key text: the value is \"a\\nb\", no number to add to"));
}

TEST_F(RankctlClientTest, DelNamesWhatWasNotThere) {
  Run({"set", "a", ""});
  EXPECT_EQ(Run({"del", "x", "a", "y"}), No("keys x, y: not set"));
  EXPECT_EQ(Run({"get", "--now", "a"}), No("key a: not set"));
}

TEST_F(RankctlClientTest, ListIsSortedAndMatches) {
  for (const char* key : {"b", "a/1", "a/2", "c\nd"}) Run({"set", key, std::string(key) + "!"});
  EXPECT_EQ(Run({"list"}), Done("a/1\na/2\nb\nc\\nd\n"));
  EXPECT_EQ(Run({"list", "a*"}), Done("a/1\na/2\n"));
  EXPECT_EQ(Run({"list", "?"}), Done("b\n"));
  EXPECT_EQ(Run({"list", "no*"}), Done());
  EXPECT_EQ(Run({"list", "[bc]*", "--values"}), Done("b\t2\tb!\nc\\nd\t4\tc\\nd!\n"));
  EXPECT_EQ(Run({"list", "--json", "a*"}), Done("[{\"key\":\"a/1\"},\n {\"key\":\"a/2\"}]\n"));
  EXPECT_EQ(Run({"list", "--json", "no*"}), Done("[]\n"));
}

TEST_F(RankctlClientTest, PrefixAndRawNameTheSameKeys) {
  EXPECT_EQ(Run({"set", "--prefix", "p/q", "k", "v"}), Done());
  EXPECT_EQ(Run({"get", "p/q/k"}), Done("v"));
  EXPECT_EQ(Run({"get", "--raw", "/p/q/k"}), Done("v"));
  EXPECT_EQ(Run({"get", "--raw", "--prefix", "/p", "q/k"}), Done("v"));
  EXPECT_EQ(Run({"list", "--prefix", "p"}), Done("q/k\n"));
  EXPECT_EQ(Run({"list", "--raw"}), Done("/p/q/k\n"));
}

TEST_F(RankctlClientTest, StatsSayWhoWaitsForWhat) {
  Job waiter(Command(server.address(), {"wait", "never"}));
  Outcome stats;
  EXPECT_TRUE(WaitFor([&] {
    stats = Run({"stats"});
    return stats.out.find("  /never: 127.0.0.1:") != std::string::npos;
  })) << stats;
  EXPECT_THAT(stats.out, AllOf(StartsWith("server        rankrun"), HasSubstr("waiters       1\n"),
                               HasSubstr("connections   2 of at most 65536\n")));
  auto json = nlohmann::json::parse(Run({"stats", "--json"}).out);
  EXPECT_EQ(json["waits"][0]["key"], "/never");
}

TEST_F(RankctlClientTest, WatchShowsEachChange) {
  Run({"set", "old", "1"});
  Job watch(Command(server.address(), {"watch", "--interval=0.001", "old", "new"}));
  EXPECT_TRUE(watch.WaitForOut("\tis\told\t1\n"));
  Run({"set", "new", "a\n"});
  EXPECT_TRUE(watch.WaitForOut("\tset\tnew\ta\\n\n"));
  Run({"set", "old", "2"});
  EXPECT_TRUE(watch.WaitForOut("\tchanged\told\t2\n"));
  Run({"del", "new"});
  EXPECT_TRUE(watch.WaitForOut("\tdeleted\tnew\n"));
  watch.Signal(SIGINT);
  EXPECT_EQ(watch.Wait(), KilledBy(SIGINT));
}

TEST_F(RankctlClientTest, WatchOfOneKeySeesItsComingAtOnce) {
  Job watch(Command(server.address(), {"watch", "--interval=3600", "--json", "k"}));
  EXPECT_TRUE(WaitFor([&] { return Run({"stats"}).out.find("  /k: ") != std::string::npos; }));
  Run({"set", "k", "v"});
  EXPECT_TRUE(watch.WaitForOut("\n"));
  EXPECT_THAT(watch.Out(), HasSubstr(R"("event":"set","key":"k","value":"v"})"));
}

TEST_F(RankctlClientTest, WatchEndsWhenItsTimeIsOver) {
  EXPECT_EQ(Run({"watch", "--timeout=0.05", "k"}), Done());
  EXPECT_EQ(Run({"watch", "--timeout=0.05", "k", "l"}), Done());
}

TEST_F(RankctlClientTest, WatchSaysThatTheServerIsGone) {
  Run({"set", "k", "v"});
  Job watch(Command(server.address(), {"watch", "k"}));
  EXPECT_TRUE(watch.WaitForOut("\n"));
  server.job().Signal(SIGTERM);
  EXPECT_EQ(watch.Wait(), Code(3));
  EXPECT_THAT(watch.Err(), MatchesRegex("rankctl: [^\n]*127.0.0.1[^\n]*\n"));
}

TEST_F(RankctlClientTest, AClosedPipeIsAnErrorAndNoCrash) {
  for (const Words& command : {Words{"stats"}, Words{"list", "--json"}, Words{"add", "n"}}) {
    Job::Options options = Command(server.address(), command);
    options.in_child = [] {
      int ends[2];
      if (pipe(ends) != 0) _exit(98);
      close(ends[0]);
      dup2(ends[1], STDOUT_FILENO);
    };
    Job job(options);
    EXPECT_EQ(OutcomeOf(job), No("standard output: write: Broken pipe"));
  }
}

TEST_F(RankctlClientTest, AFullDiskIsAnError) {
  Run({"set", "k", "v"});
  for (const char* command : {"get k", "add n", "list", "stats", "watch k", "get --help"}) {
    Job job({.arguments = {"-c", kRankctl + " store " + command + " >/dev/full"},
             .variables = {{"RANKRUN_STORE", server.address()}},
             .program = "/bin/sh"});
    EXPECT_EQ(OutcomeOf(job), No("standard output: write: No space left on device")) << command;
  }
}

TEST(RankctlTest, LargeValuesGoAsFarAsTheServerAllows) {
  constexpr size_t kMiB = size_t{1} << 20;
  ServedStore server({"--max-value=100M"});
  std::string value(100 * kMiB, 'x');
  Job::Options options = Command(server.address(), {"set", "--timeout=60", "k", "-"});
  options.stdin_text = value;
  Job set(options);
  EXPECT_EQ(OutcomeOf(set), (Outcome{0, "", ""}));
  Job get(Command(server.address(), {"get", "--timeout=60", "k"}));
  EXPECT_EQ(get.Wait(), Code(0));
  EXPECT_TRUE(get.Out() == value);
  options.stdin_text += "x";
  Job more(options);
  EXPECT_EQ(more.Wait(), Code(3));
  EXPECT_THAT(more.Err(), HasSubstr("; key and value take 104857602 bytes, which may be more than "
                                    "this server allows\n"));
}

TEST(RankctlTest, AStoreThatCannotBeReachedEndsWithThree) {
  Fd nobody = store::BoundSocket();
  std::string address = SocketAddress::LocalOf(nobody.get())->ToString();
  Job job(Command(address, {"get", "--timeout=0", "k"}));
  EXPECT_EQ(job.Wait(), Code(3));
  EXPECT_THAT(job.Err(), MatchesRegex("rankctl: connect to the store at " + address +
                                      ":[^\n]*refused[^\n]*; the address is from "
                                      "RANKRUN_STORE\n"));
}

TEST(RankctlTest, AnEndpointThatIsNoneEndsWithTwo) {
  Job job({.arguments = {"store", "get", "--store", "here", "k"}, .program = kRankctl});
  EXPECT_EQ(OutcomeOf(job),
            (Outcome{2, "",
                     "rankctl: --store: want HOST:PORT, such as node-1:29500, 127.0.0.1:29500 or "
                     "[::1]:29500, got \"here\"\n"}));
}

TEST(RankctlTest, WhoIsNoStoreBreaksTheProtocol) {
  store::FakeServer server([](store::FakeConnection& connection, int) {
    connection.Send("HTTP/1.1 400 Bad Request\r\n");
    connection.AwaitEnd();
  });
  Job job(Command("127.0.0.1:" + std::to_string(server.port()), {"stats"}));
  EXPECT_EQ(job.Wait(), Code(3));
  EXPECT_THAT(job.Err(), HasSubstr("it is not a store server"));
}

TEST(RankctlTest, AServerThatTellsNonsenseAboutItselfIsNotBelieved) {
  for (const char* nonsense : {"", "{}", "\xff", "[[[[[[[[[[[["}) {
    store::FakeServer server([nonsense](store::FakeConnection& connection, int) {
      connection.Greet();
      connection.ReceiveRequest(store::CheckRequest{{"rankrun/stats"}});
      connection.Send(std::string(1, '\0'));
      connection.ReceiveRequest(store::GetRequest{"rankrun/stats"});
      std::string reply;
      store::AppendReply(reply, store::ValueReply{nonsense});
      connection.Send(reply);
      connection.AwaitEnd();
    });
    Job job(Command("127.0.0.1:" + std::to_string(server.port()), {"stats"}));
    EXPECT_EQ(job.Wait(), Code(3));
    EXPECT_THAT(job.Err(), AllOf(StartsWith("rankctl: the store's statistics cannot be read: "),
                                 Not(HasSubstr("\n\n"))));
  }
}

// PyTorch's server without libuv closes the connection at a GET of an absent key.
TEST(RankctlTest, AServerThatDoesNotKnowTheStatisticsIsNotAskedForThem) {
  store::FakeServer server([](store::FakeConnection& connection, int number) {
    connection.Greet();
    if (number > 0) return connection.AwaitEnd();
    connection.ReceiveRequest(store::CheckRequest{{"rankrun/stats"}});
    connection.Send(std::string(1, '\1'));
    connection.ReceiveRequest(store::GetNumKeysRequest{});
    connection.Send(std::string("\3\0\0\0\0\0\0\0", 8));
    connection.ReceiveRequest(store::ListKeysRequest{});
    connection.Reset();
  });
  Job job(Command("127.0.0.1:" + std::to_string(server.port()), {"stats", "--json"}));
  EXPECT_EQ(OutcomeOf(job), (Outcome{0, "{\"server\":null,\"keys\":3,\"bytes\":null}\n", ""}));
}

TEST(RankctlTest, AServerThatDoesNotAnswerIsLeft) {
  store::FakeServer server([](store::FakeConnection& connection, int) { connection.AwaitEnd(); });
  Job job(Command("127.0.0.1:" + std::to_string(server.port()), {"get", "--timeout=0", "k"}));
  EXPECT_EQ(job.Wait(), Code(3));
  EXPECT_THAT(job.Err(), MatchesRegex("rankctl: connect to the store [^\n]*\n"));
}

TEST(RankctlTest, AnAddWhoseServerFallsSilentIsNotExplainedForLong) {
  store::FakeServer server([](store::FakeConnection& connection, int number) {
    if (number > 0) return connection.AwaitEnd();
    connection.Greet();
    connection.ReceiveRequest(store::AddRequest{"/n", 1});
    connection.Reset();
  });
  Job job(Command("127.0.0.1:" + std::to_string(server.port()), {"add", "--timeout=3600", "n"}));
  EXPECT_EQ(job.Wait(), Code(3));
}

TEST_F(RankctlClientTest, AQueueIsNoKey) {
  auto port = static_cast<uint16_t>(std::stoi(server.port()));
  auto store = store::TcpStore::Connect("127.0.0.1", port);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->QueuePush("q", "x"));
  EXPECT_EQ(Run({"get", "q"}), No("key q: not set; there is a queue of that name"));
  EXPECT_EQ(Run({"set", "--if=x", "q", "x"}), No("key q: not set, want \"x\""));
  EXPECT_EQ(Run({"watch", "--timeout=0.05", "q"}), Done());
  EXPECT_EQ(Run({"wait", "q"}), Done());
  Run({"set", "k", "1"});
  Job watch(Command(server.address(), {"watch", "--interval=0.001", "q", "k"}));
  EXPECT_TRUE(watch.WaitForOut("\tis\tk\t1\n"));
  Run({"set", "q", "v"});
  EXPECT_TRUE(watch.WaitForOut("\tset\tq\tv\n"));
  EXPECT_EQ(Run({"get", "q"}), Done("v"));
}

// PyTorch's servers before 2.8 have no queues.
TEST(RankctlTest, AnEmptyValueComesFromAServerWithoutQueues) {
  store::FakeServer server([](store::FakeConnection& connection, int number) {
    connection.Greet();
    if (number == 2) {  // why the server has closed the connection before
      connection.Receive(store::EncodeRequest(store::CheckRequest{{std::string()}}).size());
      return connection.Reset();
    }
    if (number > 0) {
      connection.ReceiveRequest(store::QueueLenRequest{"/k"});
      return connection.Reset();
    }
    connection.ReceiveRequest(store::CheckRequest{{"/k"}});
    connection.Send(std::string(1, '\0'));
    connection.ReceiveRequest(store::GetRequest{"/k"});
    connection.Send(std::string(8, '\0'));
  });
  Job job(Command("127.0.0.1:" + std::to_string(server.port()), {"get", "--now", "k"}));
  EXPECT_EQ(OutcomeOf(job), (Outcome{0, "", ""}));
}

TEST(RankctlTest, UnknownCommandsEndWithTwoAndTheNearestName) {
  struct Case {
    Words arguments;
    std::string error;
  };
  for (const Case& each : std::vector<Case>{
           {{"stor"}, "unknown command \"rankctl stor\"; did you mean \"rankctl store\"?"},
           {{"store", "gte", "k"},
            "unknown command \"rankctl store gte\"; did you mean \"rankctl store get\"?"},
           {{"store", "frobnicate"},
            "unknown command \"rankctl store frobnicate\"; rankctl store --help lists all"},
           {{},
            "no command given; usage: rankctl COMMAND [flags] [operands]; rankctl --help lists "
            "all"},
           {{"store"}, "no command given; usage: rankctl store COMMAND [flags] [operands]"},
           {{"store", "get"}, "0 operands given; usage: rankctl store get [flags] KEY"},
           {{"store", "set", "k", "v", "w"},
            "3 operands given; usage: rankctl store set [flags] KEY VALUE"},
           {{"store", "list", "--valeus"}, "unknown flag --valeus; did you mean --values?"},
           {{"--verison"}, "unknown flag --verison; did you mean --version?"},
           {{"--verbose"}, "unknown flag --verbose; rankctl --help lists all"}}) {
    Job job({.arguments = each.arguments, .program = kRankctl});
    EXPECT_EQ(OutcomeOf(job), (Outcome{2, "", "rankctl: " + each.error + "\n"}));
  }
}

TEST(RankctlTest, VersionAndHelpGoToStandardOutput) {
  Job version({.arguments = {"--version"}, .program = kRankctl});
  EXPECT_EQ(version.Wait(), Code(0));
  EXPECT_THAT(version.Out(), MatchesRegex("rankctl [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  Job help({.arguments = {"store", "-h"}, .program = kRankctl});
  EXPECT_EQ(help.Wait(), Code(0));
  EXPECT_THAT(help.Out(), AllOf(HasSubstr("Usage: rankctl store COMMAND"), HasSubstr("  watch ")));
  Job command({.arguments = {"store", "get", "--help"}, .program = kRankctl});
  EXPECT_EQ(command.Wait(), Code(0));
  EXPECT_THAT(command.Out(),
              AllOf(HasSubstr("Usage: rankctl store get [flags] KEY\n"), HasSubstr("--now")));
}

// The client is a descendant of rank 1.
TEST(StoreLimitTest, ARefusedRequestIsThatOfARankInErrorAndReport) {
  AdoptOrphans();
  const std::string script =
      "[ $RANK = 0 ] && exec sleep 60\n"
      "head -c 2000 /dev/zero | tr '\\0' x | " +
      kRankctl + " store set big - || exit 3";
  Job job({.arguments = Shell({"-n2", "--store-max-value=1000"}, script)});
  EXPECT_EQ(job.Wait(), Code(3));
  const std::string refused =
      "rank 1: SET of key \"big\" with a value of 2000 bytes is over the limit of 1000; "
      "--store-max-value allows larger values";
  EXPECT_THAT(job.Err(), HasSubstr("rankrun: warning: the store refused " + refused + "\n"));
  EXPECT_THAT(job.Err(), HasSubstr("  store: refused " + refused + "\n"));
  EXPECT_THAT(job.Err(), HasSubstr("because it refused " + refused));
  EXPECT_TRUE(NothingIsLeft(milliseconds(1'000)));
}

}  // namespace
}  // namespace rankrun::testing
