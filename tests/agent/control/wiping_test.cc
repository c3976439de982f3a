#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>

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

TEST(WipingTest, OfAKeyPairOnlyThePublicKeyIsLeft) {
  for (int i = 0; i < 4; ++i) {  // zeros cut what is left of most random keys
    Remains<KeyPair> pair(ProofRole::kServer);
    EXPECT_LE(pair.Destroy(), kKeyBytes + 1) << "the role comes before the public key";
  }
}

}  // namespace
}  // namespace rankrun::agent
