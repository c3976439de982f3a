#include "store/clients/file_log.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace rankrun::store {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr std::string_view kMagic = "rankrun-store 1\n";
constexpr size_t kNumberBytes = sizeof(uint32_t);
constexpr size_t kPayloadHeadBytes = 1 + kNumberBytes;

void PutNumber(std::string& bytes, size_t number) {
  auto narrow = static_cast<uint32_t>(number);
  bytes.append(reinterpret_cast<const char*>(&narrow), kNumberBytes);
}

// `bytes` must be long enough.
uint32_t NumberAt(std::string_view bytes, size_t offset) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data() + offset, kNumberBytes);
  return number;
}

uint32_t CheckSum(std::string_view bytes) {
  uint32_t sum = 2166136261U;
  for (char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
  return sum;
}

bool IsKind(unsigned char kind) {
  return kind >= static_cast<unsigned char>(Change::Kind::kSet) &&
         kind <= static_cast<unsigned char>(Change::Kind::kPop);
}

Result<Change> DecodePayload(std::string_view payload) {
  Error damaged{ErrorCode::kProtocol, "the record has an unknown format"};
  if (payload.size() < kPayloadHeadBytes) return damaged;
  auto kind = static_cast<unsigned char>(payload.front());
  size_t key_bytes = NumberAt(payload, 1);
  payload.remove_prefix(kPayloadHeadBytes);
  if (!IsKind(kind) || key_bytes > payload.size()) return damaged;
  return Change{static_cast<Change::Kind>(kind), std::string(payload.substr(0, key_bytes)),
                std::string(payload.substr(key_bytes))};
}

}  // namespace

std::string EncodeHeader(std::string_view run_id) {
  RANKRUN_CHECK(run_id.size() <= kMaxRunIdBytes, "the run id is too long for a header");
  std::string header(kMagic);
  PutNumber(header, run_id.size());
  return header.append(run_id);
}

Header DecodeHeader(std::string_view file) {
  constexpr size_t kFixedBytes = kMagic.size() + kNumberBytes;
  if (!file.starts_with(kMagic)) return {HeaderKind::kForeign, "", 0};
  if (file.size() < kFixedBytes) return {HeaderKind::kTorn, "", 0};
  size_t run_id_bytes = NumberAt(file, kMagic.size());
  if (run_id_bytes > kMaxRunIdBytes) return {HeaderKind::kForeign, "", 0};
  if (file.size() < kFixedBytes + run_id_bytes) return {HeaderKind::kTorn, "", 0};
  return {HeaderKind::kWhole, std::string(file.substr(kFixedBytes, run_id_bytes)),
          kFixedBytes + run_id_bytes};
}

Result<std::string> EncodeRecord(const Change& change) {
  size_t payload_bytes = kPayloadHeadBytes + change.key.size() + change.value.size();
  if (payload_bytes > std::numeric_limits<uint32_t>::max()) {
    return Error{ErrorCode::kInvalid, "key and value together are longer than 4 GiB"};
  }
  std::string payload(1, static_cast<char>(change.kind));
  payload.reserve(payload_bytes);
  PutNumber(payload, change.key.size());
  payload.append(change.key).append(change.value);
  std::string record;
  record.reserve(2 * kNumberBytes + payload_bytes);
  PutNumber(record, payload_bytes);
  PutNumber(record, CheckSum(payload));
  return record.append(payload);
}

Result<std::optional<Change>> DecodeRecord(std::string_view& bytes) {
  constexpr size_t kHeadBytes = 2 * kNumberBytes;
  if (bytes.size() < kHeadBytes) return std::optional<Change>();
  size_t payload_bytes = NumberAt(bytes, 0);
  if (bytes.size() - kHeadBytes < payload_bytes) return std::optional<Change>();
  std::string_view payload = bytes.substr(kHeadBytes, payload_bytes);
  if (CheckSum(payload) != NumberAt(bytes, kNumberBytes)) {
    return Error{ErrorCode::kProtocol, "the check sum of the record is wrong"};
  }
  auto change = DecodePayload(payload);
  if (!change) return std::move(change).error();
  bytes.remove_prefix(kHeadBytes + payload_bytes);
  return std::optional(std::move(*change));
}

}  // namespace rankrun::store
