// RPC in C.

#include <gmock/gmock.h>

#include <string>

#include <rankrun/c/rpc.h>
#include <rankrun/rankrun.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Replies "<caller>:<arguments><context>".
int JoinTexts(const char* caller, const rankrun_bytes* arguments, rankrun_rpc_reply* reply,
              void* context) {
  std::string text = std::string(caller) + ":" +
                     std::string(static_cast<const char*>(arguments->data), arguments->size) +
                     static_cast<const char*>(context);
  return rankrun_rpc_reply_set(reply, text.data(), text.size());
}

int Fail(const char*, const rankrun_bytes* arguments, rankrun_rpc_reply* reply, void*) {
  if (arguments->size > 0) rankrun_rpc_reply_set(reply, arguments->data, arguments->size);
  return 5;
}

std::string Taken(rankrun_bytes* bytes) {
  std::string text(static_cast<const char*>(bytes->data), bytes->size);
  rankrun_bytes_release(bytes);
  return text;
}

std::string CallOf(const char* to, const char* method, std::string text) {
  rankrun_bytes arguments{text.data(), text.size()};
  rankrun_bytes* result = nullptr;
  rankrun_status status =
      rankrun_rpc_sync(to, method, &arguments, RANKRUN_DEFAULT_TIMEOUT, &result);
  if (status == RANKRUN_OK) return Taken(result);
  return std::to_string(status) + " " + rankrun_last_error();
}

std::string NameOf(int rank) { return "w" + std::to_string(rank); }

TEST(CRpcTest, WorkersCallEachOther) {
  auto texts = OnRanks(2, [](int rank) -> std::string {
    static char mark[] = "!";
    if (rankrun_rpc_register("join", JoinTexts, mark) != RANKRUN_OK) return rankrun_last_error();
    if (rankrun_rpc_init(NameOf(rank).c_str(), nullptr) != RANKRUN_OK) return rankrun_last_error();
    std::string text = CallOf("w0", "join", "a") + " " + CallOf("w1", "join", "");
    rankrun_rpc_call* call = rankrun_rpc_async("w1", "join", nullptr, 0);
    rankrun_bytes* result = nullptr;
    if (rankrun_rpc_wait(call, &result) != RANKRUN_OK) return rankrun_last_error();
    text += " " + Taken(result);
    rankrun_rpc_call_release(call);
    size_t count = 0;
    int32_t id = -1;
    rankrun_rpc_worker_names(&result, &count);
    text += " " + std::to_string(count) + std::string(static_cast<char*>(result[1].data), 2);
    rankrun_bytes_release(result);
    rankrun_rpc_worker_id(nullptr, &id);
    text += " " + std::to_string(id);
    rankrun_rpc_worker_id("w1", &id);
    text += std::to_string(id);
    return rankrun_rpc_shutdown(1, 0) == RANKRUN_OK ? text : rankrun_last_error();
  });
  EXPECT_EQ(texts[0], "w0:a! w0:! w0:! 2w1 01");
  EXPECT_EQ(texts[1], "w1:a! w1:! w1:! 2w1 11");
}

TEST(CRpcTest, ErrorsHaveTheirStatus) {
  auto texts = OnRanks(1, [](int) {
    rankrun_rpc_register("fail", Fail, nullptr);
    std::string text = CallOf("w0", "fail", "") + "\n";
    rankrun_rpc_options options;
    options.size = sizeof options;
    rankrun_rpc_options_default(&options);
    options.is_dynamic = 1;
    rankrun_rpc_init("w0", &options);
    text += CallOf("w0", "fail", "") + "\n" + CallOf("w0", "fail", "no disk") + "\n" +
            CallOf("w0", "none", "") + "\n" + CallOf("w5", "fail", "") + "\n";
    rankrun_rpc_shutdown(1, 0);
    text += rankrun_rpc_async(nullptr, "fail", nullptr, 0) == nullptr ? rankrun_last_error() : "";
    return text;
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("1 RPC is not running"),
                              HasSubstr("9 call of fail on worker w0: it returned 5\n"),
                              HasSubstr("9 call of fail on worker w0: no disk\n"),
                              HasSubstr("9 call of none on worker w0: there is no method none"),
                              HasSubstr("1 there is no worker w5: want w0\n"),
                              HasSubstr("rankrun_rpc_async: to is NULL")));
}

}  // namespace
}  // namespace rankrun::comm
