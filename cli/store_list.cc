#include "cli/store_list.h"

#include <fnmatch.h>

#include <algorithm>

#include "cli/output.h"
#include "cli/store_client.h"
#include "cli/store_text.h"

namespace rankrun::cli {
namespace {

// fnmatch stops at a NUL, which a key may contain, so another byte replaces it.
// Any bytes are valid, because rankctl keeps the locale "C".
bool Matches(const std::string& pattern, std::string key) {
  std::ranges::replace(key, '\0', '\1');
  return fnmatch(pattern.c_str(), key.c_str(), 0) == 0;
}

// Prints the keys one after the other. With --values, it fetches each value just
// before.
class Lister {
 public:
  Lister(StoreClient& client, const launcher::ParsedFlags& flags)
      : client_(client), with_values_(flags.Has("values")), as_json_(flags.Has("json")) {}

  int Run(const std::vector<std::string>& keys) {
    if (as_json_) printer_.Write("[");
    for (const std::string& key : keys) {
      std::optional<std::string> value;
      if (with_values_) {
        auto looked = Look(*client_.store, key);
        if (!looked) return printer_.End(FailStore(looked.error()));
        if (!*looked) continue;  // deleted meanwhile
        value = std::move(**looked);
      }
      if (!Show(key, value)) break;
    }
    if (as_json_) printer_.Write("]\n");
    return printer_.End(kExitDone);
  }

 private:
  bool Show(const std::string& key, const std::optional<std::string>& value) {
    if (!as_json_) return printer_.Write(KeyLine(key, value));
    std::string comma = std::exchange(shown_, shown_ + 1) == 0 ? "" : ",\n ";
    return printer_.Write(comma + KeyJson(key, value));
  }

  StoreClient& client_;
  const bool with_values_;
  const bool as_json_;
  size_t shown_ = 0;
  Printer printer_;
};

}  // namespace

int RunList(const CommandLine& line) {
  auto client = OpenStore(line.flags);
  if (!client) return FailStore(client.error());
  auto keys = client->store->ListKeys();
  if (!keys) {
    Error error = std::move(keys).error();
    if (error.code == ErrorCode::kPeerLost) {
      error.message += "; servers older than PyTorch 2.10 cannot list their keys";
    }
    return FailStore(error);
  }
  if (!line.operands.empty()) {
    std::erase_if(*keys, [&](const std::string& key) { return !Matches(line.operands[0], key); });
  }
  std::ranges::sort(*keys);
  return Lister(*client, line.flags).Run(*keys);
}

}  // namespace rankrun::cli
