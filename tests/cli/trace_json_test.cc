#include "cli/trace_json.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/trace/trace_writer.h"
#include "cli/trace_clocks.h"

namespace rankrun::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TracedOperation OperationOf(uint8_t kind, int64_t begin, int64_t end) {
  TracedOperation operation{};
  operation.kind = kind;
  operation.is_finished = true;
  operation.peer = -1;
  operation.begin = begin;
  operation.end = end;
  return operation;
}

std::string TextOf(const Trace& trace) {
  std::string text;
  TraceJson json([&](std::string_view part) { text += part; });
  json.Begin();
  json.Add(trace, [](int64_t time) { return time; });
  json.End("{}");
  return text;
}

Trace TraceOf(std::vector<TracedOperation> operations) {
  Trace trace{};
  trace.rank = 3;
  trace.host = "host";
  trace.groups = {{.name = "a \"group\"", .key = 1, .size = 2}};
  trace.operations = std::move(operations);
  return trace;
}

TEST(TraceJsonTest, AnOperationIsAnEventOfKindX) {
  TracedOperation reduce = OperationOf(2, 1'234'567, 2'000'000);
  reduce.number = 7;
  reduce.count = 4;
  reduce.bytes = 16;
  reduce.peer = 1;
  reduce.has_failed = true;
  EXPECT_THAT(TextOf(TraceOf({reduce})),
              HasSubstr("{\"ph\":\"X\",\"pid\":3,\"tid\":1,\"ts\":1234.567,\"dur\":765.433,"
                        "\"name\":\"Reduce\",\"cat\":\"collective\",\"args\":{\"bytes\":16,"
                        "\"group\":\"a \\\"group\\\"\",\"number\":7,\"count\":4,"
                        "\"dtype\":\"float32\",\"op\":\"sum\",\"peer\":1,\"result\":\"failed\"}}"));
}

TEST(TraceJsonTest, CallsOfRpcNameMethodAndWorker) {
  TracedOperation call = OperationOf(trace_kind::kRpcCall, 0, 3'000);
  TracedOperation method = OperationOf(trace_kind::kRpcMethod, 1'000, 2'000);
  for (TracedOperation* each : {&call, &method}) {
    each->group = -1;
    each->key = "add";
    each->bytes = 16;
  }
  call.peer = 2;
  std::string text = TextOf(TraceOf({call, method}));
  EXPECT_THAT(text, HasSubstr("\"tid\":1,\"ts\":0.000,\"dur\":3.000,\"name\":\"RpcCall\",\"cat\":"
                              "\"rpc\",\"args\":{\"bytes\":16,\"peer\":2,\"method\":\"add\"}}"));
  EXPECT_THAT(text, HasSubstr("\"tid\":2,\"ts\":1.000,\"dur\":1.000,\"name\":\"RpcMethod\""));
  EXPECT_THAT(text, HasSubstr("{\"name\":\"RpcCall\"}"));
}

TEST(TraceJsonTest, TheOutputIsComplete) {
  EXPECT_EQ(TextOf(TraceOf({})),
            "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"pid\":3,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":"
            "\"rank 3 on host\"}},\n"
            "{\"ph\":\"M\",\"pid\":3,\"tid\":0,\"name\":\"process_sort_index\",\"args\":{"
            "\"sort_index\":3}}\n],\"otherData\":{}}\n");
}

TEST(TraceJsonTest, MessagesThatOverlapHaveThreadsOfTheirOwn) {
  constexpr uint8_t kSend = 10;
  std::string text =
      TextOf(TraceOf({OperationOf(1, 0, 90'000), OperationOf(kSend, 10'000, 50'000),
                      OperationOf(kSend, 20'000, 30'000), OperationOf(kSend, 30'000, 40'000)}));
  EXPECT_THAT(text, HasSubstr("{\"name\":\"a \\\"group\\\"\"}"));
  EXPECT_THAT(text, HasSubstr("{\"name\":\"a \\\"group\\\", messages\"}"));
  EXPECT_THAT(text, HasSubstr("{\"name\":\"a \\\"group\\\", messages 2\"}"));
  EXPECT_THAT(text, Not(HasSubstr("messages 3")));
}

TEST(TraceJsonTest, OperationsThatFollowEachOtherDoNotOverlapByTheErrorOfTheirTimes) {
  std::string text = TextOf(TraceOf({OperationOf(1, 0, 10'000), OperationOf(1, 9'990, 20'000)}));
  EXPECT_THAT(text, HasSubstr("\"tid\":1,\"ts\":10.000,\"dur\":10.000"));
  EXPECT_THAT(text, Not(HasSubstr("\"tid\":2")));
}

TEST(TraceJsonTest, AWaitForAStoreHasItsKeyAndNoGroup) {
  TracedOperation get = OperationOf(trace_kind::kStoreGet, 0, 1);
  get.group = -1;
  get.key = "k\n\xff";
  get.is_finished = false;
  std::string text = TextOf(TraceOf({get}));
  EXPECT_THAT(text, HasSubstr("\"name\":\"store\""));
  EXPECT_THAT(text, HasSubstr("\"name\":\"StoreGet\",\"cat\":\"store\",\"args\":{\"bytes\":0,"
                              "\"key\":\"k\\n\xef\xbf\xbd\",\"result\":\"under way\"}"));
}

// Returns the bytes of a trace with operations of several kinds.
std::string BytesOfTrace(const std::string& folder) {
  auto writer = TraceWriter::Create(folder, {.rank = 0, .attempt = 0, .run_id = "job"});
  const uint32_t group = (*writer)->AddGroup("world", 1, 2);
  for (uint64_t number = 1; number <= 20; ++number) {
    TraceRecord record{};
    record.numbers = PackedKinds(static_cast<uint8_t>(number), 0, 0, 1);
    record.number = number;
    record.group = group;
    TraceRecord* begun = (*writer)->Begin(record);
    if (number % 5 > 0) (*writer)->End(begun);
  }
  std::ifstream file((*writer)->path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Changes some bytes of the header, of the operations under way and of the ring.
void Damage(std::string& bytes, std::mt19937_64& random) {
  for (uint64_t changes = 1 + random() % 8; changes > 0; --changes) {
    constexpr size_t kPlaces[] = {8, offsetof(TraceMapping, under_way),
                                  offsetof(TraceMapping, ring)};
    constexpr size_t kReach = 900;
    bytes[kPlaces[random() % 3] + random() % kReach] = static_cast<char>(random());
  }
}

TEST(TraceJsonTest, ADamagedTraceIsRefusedOrMakesValidJson) {
  std::string folder = testing::TempDir() + "trace_json-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string whole = BytesOfTrace(folder);
  const std::string path = folder + "/rank_0.trace";
  std::mt19937_64 random(1);
  int read = 0;
  for (int i = 0; i < 100; ++i) {
    std::string bytes = whole;
    Damage(bytes, random);
    std::ofstream(path, std::ios::binary) << bytes;
    auto trace = ReadTrace(path);
    if (!trace) continue;
    read += 1;
    TraceClocks clocks;
    clocks.Add(*trace);
    clocks.Align();
    std::string text;
    TraceJson json([&](std::string_view part) { text += part; });
    json.Begin();
    json.Add(*trace, [&](int64_t time) { return TimeSince(0, clocks.Aligned(*trace, time)); });
    json.End("{}");
    EXPECT_TRUE(nlohmann::json::accept(text)) << i;
  }
  EXPECT_GT(read, 10);
  std::filesystem::remove_all(folder);
}

TEST(TraceJsonTest, MicrosecondsHaveThreeDigits) {
  EXPECT_EQ(Microseconds(0), "0.000");
  EXPECT_EQ(Microseconds(5), "0.005");
  EXPECT_EQ(Microseconds(1'234'567), "1234.567");
  EXPECT_EQ(Microseconds(-1'050), "-1.050");
}

}  // namespace
}  // namespace rankrun::cli
