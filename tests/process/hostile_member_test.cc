// A program that knows the secret of a running job and breaks the protocol.

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>

#include "agent/control/control_link.h"
#include "agent/nodes/control_codec.h"
#include "base/printable.h"
#include "base/uv/uv_loop.h"
#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

using namespace agent;  // the messages
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSecret = "the secret of this job";

// A spare node or, where the job has room for it, a member of each round that runs
// no workers.
class Rogue {
 public:
  Rogue(const std::string& port, Hello hello)
      : link_(loop_,
              LinkOptions{.endpoints = {{"127.0.0.1", static_cast<uint16_t>(std::stoi(port))}},
                          .job_id = "job",
                          .secret = kSecret,
                          .make_hello =
                              [bytes = Encode(MemberMessage(std::move(hello)))] { return bytes; }},
              {.on_up = [] {},
               .on_message = [this](const std::string& bytes) { OnMessage(bytes); },
               .on_down = [this](const Error& why) { Note(why.message); },
               .on_failed = [this](const DialFailure& why) { Note(why.ToString()); }}) {}

  // Waits until the coordinator has let it in.
  bool Join() {
    return loop_.RunUntil([this] { return link_.is_up() || is_refused_; }, milliseconds(20'000)) &&
           WasRead() && !is_refused_;
  }
  void Send(const std::string& payload) { link_.Send(payload); }
  // Waits until the coordinator has read all messages, or has closed the
  // connection.
  bool WasRead() {
    link_.Send(Encode(MemberMessage(Beat{1})));
    return loop_.RunUntil([this, before = answers_] { return answers_ > before || is_refused_; },
                          milliseconds(20'000));
  }
  // Waits until the members of a round, and this one of them, run their workers.
  bool TakePart() {
    for (int beats = 0; beats < 100 && round_ == 0 && !is_refused_; ++beats) {
      link_.Send(Encode(MemberMessage(Beat{1})));
      loop_.RunUntil([this] { return round_ > 0 || is_refused_; }, milliseconds(200));
    }
    return round_ > 0 && !is_refused_;
  }
  // Waits for the end of the job.
  std::optional<Verdict> WaitForVerdict() {
    loop_.RunUntil([this] { return verdict_ || is_refused_; }, milliseconds(20'000));
    return verdict_;
  }
  int round() const { return round_; }
  bool is_refused() const { return is_refused_; }
  const std::string& refusal() const { return refusal_; }

 private:
  void Note(const std::string& refusal) {
    is_refused_ = true;
    refusal_ += refusal + "\n";
  }
  void OnMessage(const std::string& bytes) {
    auto message = DecodeCoordinatorMessage(bytes);
    if (!message) return;
    if (std::holds_alternative<Beat>(*message)) ++answers_;
    if (const auto* refusal = std::get_if<Refusal>(&*message)) Note(refusal->text);
    if (const auto* prepare = std::get_if<Prepare>(&*message)) {
      Send(Encode(MemberMessage(Prepared{prepare->round, 0})));
    }
    if (const auto* start = std::get_if<StartRound>(&*message)) round_ = start->round;
    if (const auto* stop = std::get_if<Stop>(&*message)) {
      Send(Encode(MemberMessage(Stopped{stop->round})));
    }
    if (const auto* verdict = std::get_if<Verdict>(&*message)) verdict_ = *verdict;
  }

  Loop loop_;
  int answers_ = 0;
  int round_ = 0;  // that runs
  bool is_refused_ = false;
  std::string refusal_;
  std::optional<Verdict> verdict_;
  ControlLink link_;
};

struct HostileMemberTest : NodesTest {
  void SetUp() override {
    NodesTest::SetUp();
    signal(SIGPIPE, SIG_IGN);
    std::string path = folder.Path("secret");
    std::ofstream(path) << kSecret;
    chmod(path.c_str(), 0600);
    job = {"--nnodes=" + nnodes, "--node-timeout=6", "--last-call=0",
           "--restart-pause=0",  "--rdzv-id=job",    "--secret-file=" + path};
    const std::string script = Stamped("until [ -e end ]; do sleep 0.01; done");
    StartHost({"-n1"}, script);
    for (int i = 1; i < real_nodes; ++i) StartGuest({"-n1"}, script);
    ASSERT_TRUE(WaitForUp(real_nodes, 0)) << Errors();
  }
  void ExpectAllSucceed() {
    Touch("end");
    for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
  }
  void ExpectFailure(Rogue& rogue) {
    auto verdict = rogue.WaitForVerdict();
    ASSERT_TRUE(verdict) << Errors();
    EXPECT_NE(verdict->exit_code, 0);
    for (const auto& node : nodes) EXPECT_NE(node->Wait(), Code(0)) << Errors();
    ExpectNoForgedLine();
  }
  void ExpectNoForgedLine() {
    EXPECT_THAT(Errors(), Not(HasSubstr("\x1b")));
    EXPECT_THAT(Errors(), Not(HasSubstr("\nrankrun: the job has succeeded")));
  }
  Hello NewHello() {
    return {.node = ++last_node_,
            .name = "rogue",
            .min_nodes = real_nodes,
            .max_nodes = 3,
            .addresses = {"127.0.0.1"}};
  }
  // Messages that are damaged or that no node in its senses sends. `round` is the
  // present one.
  std::vector<std::string> BadMessages(int round) {
    std::vector<int> many(100'000);
    const std::string text(500'000, 'x');
    return {Encode(MemberMessage(Report{0, text})),
            Encode(MemberMessage(Report{1'000'000'000, text})),
            Encode(MemberMessage(Done{1'000'000'000})),
            Encode(MemberMessage(Stopped{-1})),
            Encode(MemberMessage(Prepared{1 << 30, 1})),
            Encode(MemberMessage(FinishSeen{round})),
            Encode(MemberMessage(Beat{1, many})),
            Encode(MemberMessage(Stuck{round, {.local_rank = 1 << 30, .what = text}})),
            Encode(MemberMessage(NewHello())),
            std::string("\xFF\xFF"),
            std::string(1000, '\x81'),
            std::string()};
  }

  const Cause forged = {.text = "all is well\n\x1b[31mrankrun: the job has succeeded",
                        .exit_code = 0};
  std::string nnodes = "3";
  int real_nodes = 3;
  uint64_t last_node_ = 4711;
};

TEST_F(HostileMemberTest, ItsClaimsForgeNoLines) {
  Rogue rogue(port, NewHello());
  ASSERT_TRUE(rogue.Join());
  rogue.Send(Encode(MemberMessage(Failed{1, forged})));
  rogue.Send(Encode(MemberMessage(Leave{forged.text})));
  ASSERT_TRUE(rogue.WasRead());
  ExpectAllSucceed();
  ExpectNoForgedLine();
}

TEST_F(HostileMemberTest, ItEndsTheJobOnlyAsAFailure) {
  Rogue rogue(port, NewHello());
  ASSERT_TRUE(rogue.Join());
  rogue.Send(Encode(MemberMessage(Close{forged})));
  ExpectFailure(rogue);
}

TEST_F(HostileMemberTest, ItsMessagesDisturbNobody) {
  std::vector<std::string> messages = BadMessages(1);
  messages.push_back(Encode(MemberMessage(Leave{std::string(500'000, 'x')})));
  for (const std::string& payload : messages) {
    Rogue rogue(port, NewHello());
    ASSERT_TRUE(rogue.Join());
    rogue.Send(payload);
    EXPECT_TRUE(rogue.WasRead()) << Hex(payload.substr(0, 40));
  }
  ExpectAllSucceed();
  EXPECT_EQ(Count(Read("up"), "\n"), 3) << Read("up");
}

TEST_F(HostileMemberTest, ItsImpossibleHellosAreRefused) {
  for (const std::function<void(Hello&)>& change : std::vector<std::function<void(Hello&)>>{
           [](Hello& hello) { hello.round = 1'000'000'000; },
           [](Hello& hello) { hello.attempts = 1'000'000'000; },
           [](Hello& hello) { hello.stop_ms = -1; }, [](Hello& hello) { hello.slots = 1 << 30; },
           [](Hello& hello) { hello.name = std::string(100'000, 'x'); },
           [](Hello& hello) { hello.max_nodes = 4; }}) {
    Hello hello = NewHello();
    change(hello);
    Rogue rogue(port, hello);
    EXPECT_FALSE(rogue.Join());
    EXPECT_TRUE(rogue.is_refused()) << hello.round << hello.slots << hello.name.substr(0, 9);
  }
  ExpectAllSucceed();
}

// The job has room for the hostile node: it takes part in the round.
struct HostileMemberOfARoundTest : HostileMemberTest {
  HostileMemberOfARoundTest() {
    nnodes = "2:3";
    real_nodes = 2;
  }
};

TEST_F(HostileMemberOfARoundTest, TheOthersGoOnWithoutIt) {
  for (size_t i = 0; i < BadMessages(0).size(); ++i) {
    Rogue rogue(port, NewHello());
    ASSERT_TRUE(rogue.TakePart()) << rogue.refusal() << Errors();
    const std::string payload = BadMessages(rogue.round())[i];
    rogue.Send(payload);
    rogue.Send(Encode(MemberMessage(Leave{"enough"})));
    rogue.Send(Encode(MemberMessage(Stopped{rogue.round()})));
    EXPECT_TRUE(rogue.WasRead()) << Hex(payload.substr(0, 40));
  }
  ExpectAllSucceed();
}

TEST_F(HostileMemberOfARoundTest, ItEndsTheJobOnlyAsAFailure) {
  Rogue rogue(port, NewHello());
  ASSERT_TRUE(rogue.TakePart()) << rogue.refusal() << Errors();
  rogue.Send(Encode(MemberMessage(Done{rogue.round()})));
  rogue.Send(Encode(MemberMessage(FinishSeen{rogue.round()})));
  rogue.Send(Encode(MemberMessage(Close{forged})));
  ExpectFailure(rogue);
}

}  // namespace
}  // namespace rankrun::testing
