#include "agent/inspect/inspector.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/log.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The rest of Inspector is shown with real jobs, in tests/process.
TEST(InspectorTest, ARequestOfAnotherNodeIsAnsweredInTheRoomThatThereIs) {
  Loop loop;
  std::vector<InspectRequest> requests;
  Inspector inspector(loop, {},
                      {.answer = [&](const InspectRequest& request, const Inspector::Reply& reply) {
                        requests.push_back(request);
                        reply("{}");
                      }});
  std::vector<std::string> answers;
  auto keep = [&](std::string json) { answers.push_back(std::move(json)); };
  inspector.AnswerFor(R"({"request":"status"})", 1000, keep);
  inspector.AnswerFor(R"({"request":"status"})", 1 << 30, keep);
  inspector.AnswerFor("nonsense", 1000, keep);
  inspector.AnswerFor(R"({"request":"stop"})", 1000, keep);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].room, 1000u);
  EXPECT_EQ(requests[1].room, kMaxAnswerBytes);
  EXPECT_THAT(answers.at(2), HasSubstr("wrong request"));
  EXPECT_THAT(answers.at(3), HasSubstr("not a request for other nodes"));
}

TEST(InspectorTest, AnswersThatNobodyAwaitsAreIgnored) {
  Loop loop;
  Inspector inspector(loop, {}, {.answer = [](const auto&, const auto&) {}});
  inspector.OnAnswer(7, "n", "{}");
  inspector.OnOver(7, {"n"});
}

// Returns what an inspector logs that may use these folders.
std::string WarningsOf(const std::vector<std::string>& folders) {
  std::string text;
  SetLogSink([&](std::string_view line) { text += line; });
  {
    Loop loop;
    Inspector inspector(loop, {.places = {folders}, .name = "job.7", .node = "a"},
                        {.answer = [](const auto&, const auto&) {}});
    inspector.OpenSoon();
    loop.RunUntil([&] { return text.ends_with('\n'); }, std::chrono::seconds(20));
  }
  SetLogSink({});
  return text;
}

TEST(InspectorTest, AFolderThatOthersMayEnterCostsAWarning) {
  char folder[] = "/tmp/rankrun_test_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string unsafe = folder + std::string("/unsafe");
  const std::string safe = folder + std::string("/safe");
  ASSERT_EQ(mkdir(unsafe.c_str(), 0700), 0);
  chmod(unsafe.c_str(), 0755);
  EXPECT_THAT(WarningsOf({unsafe}), AllOf(HasSubstr("rankctl cannot inspect this job: "),
                                          HasSubstr(unsafe + " is open to other users")));
  EXPECT_THAT(WarningsOf({unsafe, safe}),
              AllOf(HasSubstr(unsafe + " is open to other users"),
                    HasSubstr("the socket for rankctl is " + safe + "/job.7")));
  std::filesystem::remove_all(folder);
}

std::string MadeFolder() {
  std::string folder = "/tmp/rankrun_test_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) ADD_FAILURE() << "no folder";
  return folder;
}

// Inspector with a socket, whose clients are connected at once.
struct OpenInspector {
  explicit OpenInspector(Inspector::Callbacks callbacks)
      : inspector(loop, {.places = {{folder}}, .name = "job.7", .node = "a"},
                  std::move(callbacks)) {
    inspector.OpenSoon();
    loop.RunUntil([&] { return std::filesystem::exists(path); }, std::chrono::seconds(20));
  }
  ~OpenInspector() { std::filesystem::remove_all(folder); }

  // Returns the connection of a client that has sent `text`.
  Fd Ask(const std::string& text) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    Fd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(write(client.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return client;
  }
  static std::string Read(const Fd& client) {
    std::string text(1000, '\0');
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, read(client.get(), text.data(), 1000))));
    return text;
  }

  const std::string folder = MadeFolder();
  const std::string path = folder + "/job.7";
  Loop loop;
  Inspector inspector;
};

// Returns the lines for a client that asks all nodes, if `others` is what they do.
std::string LinesFor(const std::function<void(Inspector&, uint64_t number)>& others) {
  uint64_t asked = 0;
  OpenInspector open(
      {.answer = [](const auto&, const auto& reply) { reply("{}"); },
       .ask_others = [&](uint64_t number, const InspectRequest&) { return (asked = number) > 0; }});
  const Fd client = open.Ask("{\"request\":\"status\",\"all_nodes\":true}\n");
  EXPECT_TRUE(open.loop.RunUntil([&] { return asked > 0; }, std::chrono::seconds(20)));
  others(open.inspector, asked);
  return OpenInspector::Read(client);
}

TEST(InspectorTest, AClientWithManyRequestsLeavesRoomForOthers) {
  std::vector<Inspector::Reply> replies;
  OpenInspector open({.answer = [&](const auto&, const auto& reply) { replies.push_back(reply); }});
  const std::string line = "{\"request\":\"status\"}\n";
  std::string lines;
  for (int i = 0; i < 1'000; ++i) lines += line;
  auto has = [&](size_t count) {
    return open.loop.RunUntil([&] { return replies.size() == count; }, std::chrono::seconds(20));
  };
  const Fd greedy = open.Ask(lines);
  EXPECT_TRUE(has(16));
  const Fd other = open.Ask(line);
  EXPECT_TRUE(has(17)) << replies.size();
  replies.back()("{}");
  EXPECT_THAT(OpenInspector::Read(other), HasSubstr("\"answer\":{}"));
  EXPECT_THAT(OpenInspector::Read(greedy), HasSubstr("too many requests are under way"));
}

TEST(InspectorTest, AnAnswerOfSeveralLinesIsNoAnswer) {
  EXPECT_EQ(LinesFor([](Inspector& inspector, uint64_t number) {
              inspector.OnAnswer(number, "b", "{}\n");
              inspector.OnAnswer(number, "c", "{\n}");
              inspector.OnOver(number, {});
            }),
            "{\"node\":\"a\",\"answer\":{}}\n"
            "{\"over\":true,\"missing\":[\"b\",\"c\"]}\n");
}

TEST(InspectorTest, NodesThatWereNotAskedAreNotMissing) {
  EXPECT_EQ(LinesFor([](Inspector& inspector, uint64_t number) { inspector.OnRefused(number); }),
            "{\"node\":\"a\",\"answer\":{}}\n"
            "{\"over\":true,\"missing\":[],\"note\":\"too many requests are under way\"}\n");
}

}  // namespace
}  // namespace rankrun::agent
