#include "cli/store_stats.h"

#include "cli/output.h"
#include "cli/store_client.h"
#include "cli/store_text.h"
#include "store/server/server_stats.h"

namespace rankrun::cli {
namespace {

Result<PlainStats> Count(const launcher::ParsedFlags& flags, StoreClient& client) {
  auto keys = client.store->NumKeys();
  if (!keys) return std::move(keys).error();
  PlainStats stats{.keys = *keys};
  auto names = client.store->ListKeys();
  if (!names && names.error().code == ErrorCode::kPeerLost) {
    // An old server closes the connection at an unknown request. Connecting again
    // fails if the server is gone instead.
    auto again = OpenRawStore(flags);
    if (!again) return std::move(again).error();
    return stats;
  }
  if (!names) return std::move(names).error();
  stats.bytes = 0;
  for (const std::string& name : *names) {
    auto value = Look(*client.store, name);
    if (!value) return std::move(value).error();
    if (*value) *stats.bytes += name.size() + (*value)->size();
  }
  return stats;
}

}  // namespace

int RunStats(const CommandLine& line) {
  bool as_json = line.flags.Has("json");
  auto client = OpenRawStore(line.flags);
  if (!client) return FailStore(client.error());
  auto told = Look(*client->store, std::string(store::kStatsKey));
  if (!told) return FailStore(told.error());
  if (*told) {
    auto text = as_json ? StatsJson(**told) : StatsText(**told);
    return text ? Print(*text) : FailStore(text.error());
  }
  auto counted = Count(line.flags, *client);
  if (!counted) return FailStore(counted.error());
  return Print(as_json ? PlainStatsJson(*counted) : PlainStatsText(*counted));
}

}  // namespace rankrun::cli
