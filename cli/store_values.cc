#include "cli/store_values.h"

#include <unistd.h>

#include <cerrno>

#include "base/format.h"
#include "base/parse_number.h"
#include "base/printable.h"
#include "cli/output.h"
#include "cli/store_client.h"
#include "store/engine/counter.h"

namespace rankrun::cli {
namespace {

using std::chrono::milliseconds;

// The length of values in messages.
constexpr size_t kShownCharacters = 60;

std::string Quoted(std::string_view value) {
  return "\"" + EscapedAndCut(value, kShownCharacters) + "\"";
}

std::string NotSetWithin(std::span<const std::string> missing, milliseconds timeout) {
  std::string text = NameKeys(missing) + ": not set";
  return timeout > milliseconds(0) ? text + " within " + FormatSeconds(timeout) : text;
}

Result<std::string> ReadStandardInput() {
  constexpr size_t kPiece = size_t{1} << 20;
  std::string bytes;
  while (true) {
    size_t start = bytes.size();
    bytes.resize(start + kPiece);
    ssize_t count = read(STDIN_FILENO, bytes.data() + start, kPiece);
    bytes.resize(start + (count > 0 ? static_cast<size_t>(count) : 0));
    if (count == 0) return bytes;
    if (count < 0 && errno != EINTR) return SystemError("standard input: read", errno);
  }
}

// Servers close the connection without a reason. The usual one is a value that
// is too large.
Error MaybeTooLarge(Error error, const std::string& key, size_t value_bytes) {
  if (error.code == ErrorCode::kPeerLost) {
    error.message += "; key and value take " + std::to_string(key.size() + value_bytes) +
                     " bytes, which may be more than this server allows";
  }
  return error;
}

int SetAnyway(StoreClient& client, const std::string& key, const std::string& value) {
  auto set = client.store->Set(key, value);
  if (!set) return FailStore(MaybeTooLarge(std::move(set).error(), key, value.size()));
  // SET has no reply. The reply to a later request shows that it was accepted.
  auto there = client.store->Check({&key, 1});
  if (there) return kExitDone;
  return FailStore(
      MaybeTooLarge(std::move(there).error().In("set " + NameKeys({&key, 1})), key, value.size()));
}

// COMPARE_SET replies with the new value, or with `expected` if there is none.
int SetIf(StoreClient& client, const std::string& key, const std::string& expected,
          const std::string& value) {
  auto set = client.store->CompareSet(key, expected, value);
  if (!set) return FailStore(MaybeTooLarge(std::move(set).error(), key, value.size()));
  std::string name = NameKeys({&key, 1});
  if (set->value != value && set->value != expected) {
    return Fail(name + ": the value is " + Quoted(set->value) + ", want " + Quoted(expected),
                kExitNo);
  }
  if (set->value == value && expected != value) return kExitDone;
  // The reply is the same for a key that is not set and for one that has the
  // expected value.
  auto there = Look(*client.store, key);
  if (!there) return FailStore(there.error());
  // An empty value may be that of a queue.
  bool is_key = *there && (value.empty() || !(*there)->empty());
  if (is_key && expected == value) return kExitDone;
  return Fail(name + ": not set, want " + Quoted(expected), kExitNo);
}

// Servers close the connection at an ADD to a value that is not a number. A new
// connection reads the value to find out.
Error ExplainAdd(StoreClient& client, const std::string& key, Error error) {
  if (error.code != ErrorCode::kPeerLost) return error;
  auto clone = client.store->Clone(kToExplain);
  if (!clone) return error;
  auto value = (*clone)->Get(key, milliseconds(0));
  if (!value || store::ParseCounter(*value)) return error;
  return {ErrorCode::kNotFound,
          NameKeys({&key, 1}) + ": the value is " + Quoted(*value) + ", no number to add to"};
}

}  // namespace

int RunGet(const CommandLine& line) {
  auto client = OpenStore(line.flags);
  if (!client) return FailStore(client.error());
  const std::string& key = line.operands[0];
  milliseconds timeout = line.flags.Has("now") ? milliseconds(0) : client->timeout;
  auto missing = MissingAfter(*client->store, {&key, 1}, timeout);
  if (!missing) return FailStore(missing.error());
  if (!missing->empty()) return Fail(NotSetWithin(*missing, timeout), kExitNo);
  auto value = client->store->GetNow(key);
  if (!value) return FailStore(value.error());
  if (value->empty() && QueueFinder(*client->store).IsQueue(key)) {
    return Fail(NameKeys({&key, 1}) + ": not set; there is a queue of that name", kExitNo);
  }
  if (isatty(STDOUT_FILENO) != 0) *value += '\n';
  return Print(*value);
}

int RunSet(const CommandLine& line) {
  const std::string& key = line.operands[0];
  Result<std::string> value = line.operands[1];
  if (*value == "-") value = ReadStandardInput();
  if (!value) return Fail(value.error().message, kExitNo);
  auto client = OpenStore(line.flags);
  if (!client) return FailStore(client.error());
  if (auto expected = line.flags.Text("if")) return SetIf(*client, key, *expected, *value);
  return SetAnyway(*client, key, *value);
}

int RunAdd(const CommandLine& line) {
  const std::string& key = line.operands[0];
  std::string text = line.operands.size() > 1 ? line.operands[1] : "1";
  auto delta = ParseNumber<int64_t>(text);
  if (!delta) return Fail("N: want a whole number of 64 bits, got \"" + text + "\"", kExitUsage);
  auto client = OpenStore(line.flags);
  if (!client) return FailStore(client.error());
  auto sum = client->store->Add(key, *delta);
  if (sum) return Print(std::to_string(*sum) + "\n");
  Error error = ExplainAdd(*client, key, std::move(sum).error());
  return error.code == ErrorCode::kNotFound ? Fail(error.message, kExitNo) : FailStore(error);
}

int RunWait(const CommandLine& line) {
  auto client = OpenStore(line.flags);
  if (!client) return FailStore(client.error());
  auto missing = MissingAfter(*client->store, line.operands, client->timeout);
  if (!missing) return FailStore(missing.error());
  if (!missing->empty()) return Fail(NotSetWithin(*missing, client->timeout), kExitNo);
  return kExitDone;
}

int RunDel(const CommandLine& line) {
  auto client = OpenStore(line.flags);
  if (!client) return FailStore(client.error());
  std::vector<std::string> missing;
  for (const std::string& key : line.operands) {
    auto existed = client->store->Delete(key);
    if (!existed) return FailStore(existed.error());
    if (!*existed) missing.push_back(key);
  }
  if (missing.empty()) return kExitDone;
  return Fail(NotSetWithin(missing, milliseconds(0)), kExitNo);
}

}  // namespace rankrun::cli
