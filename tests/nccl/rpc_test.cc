// Attachments of RPC on GPUs.

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <rankrun/gpu.h>
#include <rankrun/rpc.h>
#include <rankrun/rpc/backend.h>
#include <rankrun/rpc/values.h>
#include <rankrun/store.h>

#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using rpc::DevicePairs;
using rpc::Payload;
using rpc::WorkerInfo;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr Device kCpu{};
constexpr Device Gpu(int index) { return {.type = DeviceType::kCuda, .index = index}; }

// An attachment with this text on a device.
rpc::Attachment On(const Device& device, const std::string& text) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, text.size()), cudaSuccess);
  std::memcpy(memory, text.data(), text.size());
  std::shared_ptr<void> owner(memory, [](void* last) { cudaFree(last); });
  auto* bytes = static_cast<std::byte*>(memory);
  return {std::move(owner), {bytes, text.size()}, device};
}

std::string InWords(const rpc::Attachment& attachment) {
  std::string text(reinterpret_cast<const char*>(attachment.bytes.data()), attachment.bytes.size());
  bool is_gpu = attachment.device.type == DeviceType::kCuda;
  return text + (is_gpu ? "@" + std::to_string(attachment.device.index) : "@cpu");
}

std::string InWords(const Payload& payload) {
  std::string text = payload.bytes;
  for (const rpc::Attachment& each : payload.attachments) text += " " + InWords(each);
  return text;
}

// Replies what it has seen, and the attachments.
Payload Echo(const WorkerInfo&, const Payload& arguments) {
  return {InWords(arguments), arguments.attachments};
}

std::shared_ptr<rpc::TensorPipeRpcBackendOptions> WithMap(const std::string& callee,
                                                          const DevicePairs& pairs) {
  auto options = std::make_shared<rpc::TensorPipeRpcBackendOptions>();
  options->SetDeviceMap(callee, pairs);
  return options;
}

// Runs `body` on workers w0 and w1, of which w0 has this map for w1.
std::vector<std::string> OnTwo(const DevicePairs& pairs,
                               const std::function<std::string(int id)>& body) {
  return OnRanks(2, [&](int rank) {
    rpc::RegisterMethod("echo", Echo);
    rpc::RegisterMethod("stray", [](const WorkerInfo&, const Payload&) {
      return Payload{"", {On(Gpu(5), "x")}};
    });
    rpc::Options options;
    if (rank == 0) options.backend_options = WithMap("w1", pairs);
    std::string text = ErrorOf([&] { rpc::Init("w" + std::to_string(rank), options); });
    if (text != "no error") return text;
    text = body(rank);
    rpc::Shutdown();
    return text;
  });
}

TEST(RpcDevicesTest, AttachmentsTravelByTheMapAndBack) {
  auto texts = OnTwo({{Gpu(0), Gpu(3)}, {Gpu(1), Gpu(0)}, {kCpu, Gpu(2)}}, [](int id) {
    if (id == 1) return std::string();
    Payload sent{"saw", {On(Gpu(0), "a"), On(kCpu, "b"), On(Gpu(1), "c")}};
    std::string text = InWords(rpc::RpcSync("w1", "echo", sent));
    text += "; " + InWords(rpc::RpcAsync("w1", "echo", sent).Wait());
    return text + "; " + InWords(rpc::Remote("w1", "echo", sent).ToHere());
  });
  const std::string once = "saw a@3 b@2 c@0 a@0 b@cpu c@1";
  EXPECT_EQ(texts[0], once + "; " + once + "; " + once);
}

TEST(RpcDevicesTest, AGpuWithoutAMapIsRefused) {
  auto texts = OnTwo({{Gpu(0), Gpu(1)}}, [](int id) {
    Payload sent{"", {On(Gpu(2), "a")}};
    return ErrorOf([&] { rpc::RpcSync(1 - id, "echo", sent); }) + "\n" +
           ErrorOf([&] { rpc::RpcSync(1 - id, "stray"); }) + "\n" +
           InWords(rpc::RpcSync(id, "echo", sent));
  });
  EXPECT_EQ(texts[0],
            "DistError: an attachment is on cuda:2, from where no device map leads to worker w1: "
            "want SetDeviceMap(\"w1\", ...)\n"
            "DistError: call of stray on worker w1: an attachment is on cuda:5, from where no "
            "device map leads to worker w0: want SetDeviceMap in the options of the caller\n"
            " a@2 a@2");
  EXPECT_THAT(texts[1], HasSubstr("want SetDeviceMap(\"w0\", ...)"));
}

// A kernel writes the data while the call is made.
TEST(RpcDevicesTest, DataIsReadInTheOrderOfTheStream) {
  auto texts = OnTwo({{Gpu(0), Gpu(0)}}, [](int id) {
    if (id == 1) return std::string();
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    rpc::Attachment data = On(Gpu(0), "old");
    auto* memory = const_cast<std::byte*>(data.bytes.data());
    cudaMemcpyAsync(memory, "new", 3, cudaMemcpyHostToDevice, stream);
    StreamScope scope(stream);
    std::string text = rpc::RpcSync("w1", "echo", {"saw", {data}}).bytes;
    cudaStreamDestroy(stream);
    return text;
  });
  EXPECT_EQ(texts[0], "saw new@0");
}

TEST(RpcDevicesTest, WrongMapsAreErrorsOfAll) {
  auto error = [](const DevicePairs& pairs) {
    auto texts = OnTwo(pairs, [](int) { return std::string("no error"); });
    EXPECT_EQ(texts[0], texts[1]);
    return texts[0];
  };
  EXPECT_EQ(error({{Gpu(8), Gpu(0)}}),
            "DistError: worker w0 has the source cuda:8 in its device map for w1, but w0 has "
            "cuda:0..7");
  EXPECT_EQ(error({{Gpu(0), Gpu(8)}}),
            "DistError: worker w0 has the target cuda:8 in its device map for w1, but w1 has "
            "cuda:0..7");
  EXPECT_EQ(error({}), "no error");
}

TEST(RpcDevicesTest, ADynamicGroupChecksMapsWhenAWorkerJoins) {
  auto texts = OnRanks(2, [](int rank) {
    rpc::RegisterMethod("echo", Echo);
    auto port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")));
    TcpStore meeting({.port = port});
    std::string text;
    auto join = [&](const DevicePairs& pairs) {
      rpc::Init("w" + std::to_string(rank),
                {.backend_options = WithMap(rank == 0 ? "w1" : "w0", pairs), .is_dynamic = true});
    };
    if (rank == 0) {
      join({{Gpu(0), Gpu(1)}});  // of a worker that is not there yet
    } else {
      meeting.Wait({"first"});
      text = ErrorOf([&] { join({{Gpu(0), Gpu(9)}}); }) + "\n";
      join({{Gpu(4), Gpu(5)}});
    }
    meeting.Set(rank == 0 ? "first" : "second", "");
    meeting.Wait({"second"});
    Device own = Gpu(rank == 0 ? 0 : 4);
    text += InWords(rpc::RpcSync(rank == 0 ? "w1" : "w0", "echo", {"saw", {On(own, "a")}}));
    meeting.Barrier("called", 2);
    rpc::Shutdown();
    return text;
  });
  EXPECT_EQ(texts[0], "saw a@1 a@0");
  EXPECT_EQ(texts[1],
            "DistError: worker w1 has the target cuda:9 in its device map for w0, but w0 has "
            "cuda:0..7\nsaw a@5 a@4");
}

TEST(RpcDevicesTest, ATensorValueArrivesOnItsDevice) {
  auto texts = OnTwo({{Gpu(0), Gpu(2)}}, [](int id) {
    if (id == 1) return std::string();
    rpc::TensorValue tensor{.dtype = DType::kUInt8, .shape = {3}, .data = On(Gpu(0), "abc")};
    Payload reply = rpc::RpcSync("w1", "echo", rpc::internal::ArgumentsOf(tensor));
    return InWords(reply.attachments.at(0));
  });
  EXPECT_EQ(texts[0], "abc@0");
}

}  // namespace
}  // namespace rankrun::comm
