#include <gmock/gmock.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <string>

#include "agent/control/job_secret.h"
#include "agent/control/session_cipher.h"

// Memory of keys after the end of their owner.

namespace rankrun::agent {
namespace {

// An object whose memory outlives it.
template <typename T>
class Remains {
 public:
  template <typename... Arguments>
  explicit Remains(const Arguments&... arguments) : object_(new (memory_) T(arguments...)) {}

  T& object() { return *object_; }

  // Destroys the object. Returns the number of neighbouring bytes that are as
  // they were before and not zero: the most of all.
  size_t Destroy() {
    std::array<unsigned char, sizeof(T)> before = Read();
    object_->~T();
    std::array<unsigned char, sizeof(T)> after = Read();
    size_t most = 0, same = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      same = before[i] != 0 && after[i] == before[i] ? same + 1 : 0;
      most = std::max(most, same);
    }
    return most;
  }

 private:
  std::array<unsigned char, sizeof(T)> Read() const {
    std::array<unsigned char, sizeof(T)> bytes;
    const volatile std::byte* at = memory_;
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(*at++);
    return bytes;
  }

  alignas(T) std::byte memory_[sizeof(T)] = {};
  T* const object_;
};

// Random bytes contain a zero now and then.
constexpr size_t kChance = 4;

TEST(WipingTest, NothingIsLeftOfAJobsSecret) {
  Remains<JobSecret> secret("open sesame");
  ASSERT_TRUE(secret.object().exists());
  EXPECT_LT(secret.Destroy(), kChance);
}

TEST(WipingTest, NothingIsLeftOfTheKeysOfAConnection) {
  KeyPair client(ProofRole::kClient), server(ProofRole::kServer);
  Remains<SessionKeys> keys;
  ASSERT_TRUE(client.Derive(server.public_key(), keys.object()));
  EXPECT_LT(keys.Destroy(), kChance);
}

// Returns the bytes at `from`, freed or not.
std::string Memory(const char* from, size_t bytes) {
  std::string copy(bytes, '\0');
  iovec into{copy.data(), bytes};
  iovec of{const_cast<char*>(from), bytes};
  EXPECT_EQ(process_vm_readv(getpid(), &into, 1, &of, 1, 0), static_cast<ssize_t>(bytes));
  return copy;
}

TEST(WipingTest, NothingIsLeftOfTheKeyThatACipherHolds) {
  KeyPair client(ProofRole::kClient), server(ProofRole::kServer);
  SessionKeys keys;
  ASSERT_TRUE(client.Derive(server.public_key(), keys));
  auto cipher = std::make_unique<SessionCipher>(keys);
  // The allocator overwrites the beginning of freed memory.
  const std::string key(keys.receive.begin() + kKeyBytes / 2, keys.receive.end());
  const char* after_key = cipher->header().data();
  ASSERT_THAT(Memory(after_key - kKeyBytes, kKeyBytes), testing::HasSubstr(key));
  cipher.reset();
  EXPECT_THAT(Memory(after_key - kKeyBytes, kKeyBytes), testing::Not(testing::HasSubstr(key)));
}

TEST(WipingTest, OfAKeyPairOnlyThePublicKeyIsLeft) {
  for (int i = 0; i < 4; ++i) {  // Remains counts a random key up to a zero
    Remains<KeyPair> pair(ProofRole::kServer);
    EXPECT_LE(pair.Destroy(), kKeyBytes + 1) << "the role comes before the public key";
  }
}

}  // namespace
}  // namespace rankrun::agent
