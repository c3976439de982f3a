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

// A spare node, as the coordinator sees it.
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
               .on_message =
                   [this](const std::string& bytes) {
                     auto message = DecodeCoordinatorMessage(bytes);
                     answers_ += message && std::holds_alternative<Beat>(*message) ? 1 : 0;
                     is_refused_ |= message && std::holds_alternative<Refusal>(*message);
                   },
               .on_down = [this](const Error&) { is_refused_ = true; },
               .on_failed = [this](const DialFailure&) { is_refused_ = true; }}) {}

  bool Join() {
    return loop_.RunUntil([this] { return link_.is_up() || is_refused_; }, milliseconds(20'000));
  }
  void Send(const std::string& payload) { link_.Send(payload); }
  // Waits until the coordinator has read all messages, or has closed the
  // connection.
  bool WasRead() {
    link_.Send(Encode(MemberMessage(Beat{1})));
    return loop_.RunUntil([this] { return answers_ > 0 || is_refused_; }, milliseconds(20'000));
  }
  bool is_refused() const { return is_refused_; }

 private:
  Loop loop_;
  int answers_ = 0;
  bool is_refused_ = false;
  ControlLink link_;
};

struct HostileMemberTest : NodesTest {
  void SetUp() override {
    NodesTest::SetUp();
    signal(SIGPIPE, SIG_IGN);
    std::string path = folder.Path("secret");
    std::ofstream(path) << kSecret;
    chmod(path.c_str(), 0600);
    job = {"--nnodes=3", "--node-timeout=10", "--rdzv-id=job", "--secret-file=" + path};
    const std::string script = Stamped("until [ -e end ]; do sleep 0.01; done");
    StartHost({"-n1"}, script);
    for (int i = 0; i < 2; ++i) StartGuest({"-n1"}, script);
    ASSERT_TRUE(WaitForUp(3, 0)) << Errors();
  }
  void ExpectAllSucceed() {
    Touch("end");
    for (const auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
  }
  Hello NewHello() {
    return {.node = ++last_node_, .name = "rogue", .min_nodes = 3, .max_nodes = 3};
  }

  uint64_t last_node_ = 4711;
};

TEST_F(HostileMemberTest, ASpareNodeCannotEndTheJobOrForgeLines) {
  Rogue rogue(port, NewHello());
  ASSERT_TRUE(rogue.Join());
  Cause forged{.text = "all is well\n\x1b[31mrankrun: the job has succeeded", .exit_code = 0};
  rogue.Send(Encode(MemberMessage(Close{forged})));
  rogue.Send(Encode(MemberMessage(Failed{1, forged})));
  rogue.Send(Encode(MemberMessage(Leave{forged.text})));
  ASSERT_TRUE(rogue.WasRead());
  ExpectAllSucceed();
  EXPECT_THAT(Errors(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Errors(), Not(HasSubstr("\nrankrun: the job has succeeded")));
}

TEST_F(HostileMemberTest, ItsMessagesDisturbNobody) {
  std::vector<int> many(100'000);
  const std::string text(500'000, 'x');
  for (const std::string& payload :
       {Encode(MemberMessage(Report{0, text})), Encode(MemberMessage(Report{1'000'000'000, text})),
        Encode(MemberMessage(Leave{text})), Encode(MemberMessage(Done{1'000'000'000})),
        Encode(MemberMessage(Stopped{-1})), Encode(MemberMessage(Prepared{1 << 30, 1})),
        Encode(MemberMessage(FinishSeen{1})), Encode(MemberMessage(Beat{1, many})),
        Encode(MemberMessage(Stuck{1, {.local_rank = 1 << 30, .what = text}})),
        Encode(MemberMessage(NewHello())), std::string("\xFF\xFF"), std::string(1000, '\x81'),
        std::string()}) {
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
    ASSERT_TRUE(rogue.Join());
    EXPECT_TRUE(rogue.WasRead());
    EXPECT_TRUE(rogue.is_refused()) << hello.round << hello.slots << hello.name.substr(0, 9);
  }
  ExpectAllSucceed();
}

}  // namespace
}  // namespace rankrun::testing
