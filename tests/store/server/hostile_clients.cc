#include "tests/store/server/hostile_clients.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/store/server/raw_client.h"

namespace rankrun::store {
namespace {

std::string LengthOf(uint64_t length) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes;
}

std::string Text(std::string_view text) { return LengthOf(text.size()) + std::string(text); }

// Beginnings of connections, each up to a length, a count or a key.
std::vector<std::string> UpToLengths() {
  std::string validate = EncodeValidate();
  std::string key = Text("/k");
  std::string old_set = std::string(1, '\0') + key + Text("");
  return {
      validate + "\x01",          // SET: the key
      validate + "\x01" + key,    // the value
      validate + "\x05",          // CHECK: the count
      validate + "\x0b",          // MULTI_SET
      validate + "\x12",          // BARRIER
      "\x02",                     // GET of the old dialect
      old_set + "\x01" + key,     // COMPARE_SET, the expected value
      old_set + "\x05",           // WAIT: the count
      std::string(1, '\0') + key  // SET: the value
  };
}

}  // namespace

void SendSlowly(const SocketAddress& server, size_t count, size_t begun_bytes, int rounds) {
  const std::string begun =
      "\x01" + Text("/slow") + LengthOf(64 << 20) + std::string(begun_bytes, 's');
  std::vector<std::unique_ptr<RawClient>> clients(count);
  for (int round = 0; round < rounds; ++round) {
    for (auto& client : clients) {
      if (client != nullptr && client->Send("s")) continue;
      client = std::make_unique<RawClient>(server);
      client->Send(begun);
    }
  }
}

void SendGarbage(const SocketAddress& server, unsigned seed, int connections) {
  constexpr size_t kAtOnce = 64;
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<RawClient>> clients(kAtOnce);
  for (int i = 0; i < connections; ++i) {
    auto& client = clients[random() % kAtOnce];
    client = std::make_unique<RawClient>(server, /*validate=*/random() % 2 == 0);
    std::string bytes;
    if (random() % 2 == 0) {
      bytes.resize(random() % 2048);
      for (char& byte : bytes) byte = static_cast<char>(random());
    } else {
      bytes = EncodeRequest(MultiSetRequest{{{"/garbage", "1"}, {"/more", "2"}}}) +
              EncodeRequest(WaitRequest{{"/garbage", "/never"}});
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    client->Send(bytes);
  }
}

void AnnounceHugeLengths(const SocketAddress& server, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& begin : UpToLengths()) {
      for (uint64_t length : {uint64_t{1} << 32, UINT64_MAX, uint64_t{1} << 63}) {
        RawClient client(server, /*validate=*/false);
        client.Send(begin + LengthOf(length));
        EXPECT_TRUE(client.IsClosed()) << length;
      }
    }
  }
}

void FillUp(const SocketAddress& server, size_t store_bytes) {
  constexpr size_t kValueBytes = size_t{1} << 20;
  RawClient client(server);
  std::string value(kValueBytes, 'f');
  for (size_t i = 0; i <= store_bytes / kValueBytes; ++i) {
    if (!client.Ask(SetRequest{"/fill" + std::to_string(i), value})) break;
  }
  EXPECT_TRUE(client.IsClosed());
}

void ComeAndGo(const SocketAddress& server, int times) {
  for (int i = 0; i < times; ++i) {
    RawClient client(server, /*validate=*/i % 2 == 0);
    if (i % 4 == 0) client.Ask(WaitRequest{{"/never"}});
  }
}

}  // namespace rankrun::store
