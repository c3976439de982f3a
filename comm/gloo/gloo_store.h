#pragma once

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace rankrun::comm {

// Carries an Error of ours through Gloo's code.
struct StoreFailure : std::runtime_error {
  explicit StoreFailure(Error why) : std::runtime_error(why.message), error(std::move(why)) {}
  Error error;
};

// Our store in the shape that Gloo's mesh set-up asks for: keys are rank
// numbers, values the addresses of that rank. Throws StoreFailure.
// Thread: one at a time.  Lifetime: only while Gloo connects.
class GlooStore final : public ::gloo::rendezvous::Store {
 public:
  GlooStore(store::Store& store, std::string prefix, std::chrono::milliseconds timeout);

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

  // What Gloo has set: this rank's addresses, one for each peer.
  const std::vector<char>& published() const { return published_; }

 private:
  std::string Full(const std::string& key) const { return prefix_ + "/" + key; }

  store::Store& store_;
  const std::string prefix_;
  const std::chrono::milliseconds timeout_;
  std::vector<char> published_;
};

}  // namespace rankrun::comm
