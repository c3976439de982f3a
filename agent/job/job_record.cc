#include "agent/job/job_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/fnv.h"
#include "base/memory_file.h"
#include "base/random_bytes.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::json;

// Precedes the bytes of a record in its slot.
struct SlotHeader {
  uint64_t sequence;  // the complete record with the higher number is newer
  uint64_t length;
  uint64_t checksum;  // over sequence, length and bytes
};

// It only has to detect half-written records.
uint64_t Checksum(uint64_t sequence, std::string_view bytes) {
  Fnv sum(sequence);
  sum.Add(bytes);
  return sum.hash() ^ bytes.size();
}

std::optional<std::string> ReadAt(int fd, size_t offset, size_t length) {
  std::string bytes(length, '\0');
  for (size_t done = 0; done < length;) {
    ssize_t count =
        pread(fd, bytes.data() + done, length - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return bytes;
}

Result<void> WriteFromStart(int fd, std::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t count = pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("write the job's record", errno);
    done += static_cast<size_t>(count);
  }
  if (ftruncate(fd, static_cast<off_t>(bytes.size())) != 0) {
    return SystemError("write the job's record", errno);
  }
  return {};
}

Json Encode(const JobFolder& folder) {
  return {{"base", folder.temporary_base}, {"path", folder.path}, {"keep", folder.keep}};
}

JobFolder DecodeFolder(const Json& json) {
  return {.temporary_base = json.at("base"), .path = json.at("path"), .keep = json.at("keep")};
}

Json Encode(const RestartsUsed& restarts) {
  return {{"used", restarts.used},
          {"most", restarts.most},
          {"consecutive_failures", restarts.consecutive_failures}};
}

RestartsUsed DecodeRestarts(const Json& json) {
  return {.used = json.at("used"),
          .most = json.at("most"),
          .consecutive_failures = json.at("consecutive_failures")};
}

JobRecord Decode(const Json& json) {
  JobRecord record{.node_id = json.at("node_id"),
                   .incarnation = json.at("incarnation"),
                   .job_began = TimePoint(Duration(json.at("began").get<int64_t>())),
                   .last_end = json.at("last_end"),
                   .run_id = json.at("run_id"),
                   .events_file = json.at("events_file"),
                   .attempt = json.at("attempt"),
                   .may_restart = json.at("may_restart")};
  if (json.contains("restarts")) record.restarts = DecodeRestarts(json.at("restarts"));
  if (json.contains("folder")) record.folder = DecodeFolder(json.at("folder"));
  const auto& state = json.at("state").get_binary();
  record.state.assign(state.begin(), state.end());
  return record;
}

}  // namespace

std::string EncodeJobRecord(const JobRecord& record) {
  Json json{{"node_id", record.node_id},
            {"incarnation", record.incarnation},
            {"began", int64_t{record.job_began.time_since_epoch().count()}},
            {"last_end", record.last_end},
            {"run_id", record.run_id},
            {"events_file", record.events_file},
            {"attempt", record.attempt},
            {"may_restart", record.may_restart}};
  if (record.restarts) json["restarts"] = Encode(*record.restarts);
  if (record.folder) json["folder"] = Encode(*record.folder);
  json["state"] = Json::binary({record.state.begin(), record.state.end()});
  std::vector<uint8_t> bytes = Json::to_cbor(json);
  return {bytes.begin(), bytes.end()};
}

std::optional<JobRecord> DecodeJobRecord(const std::string& bytes) {
  try {
    return Decode(Json::from_cbor(bytes));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

struct JobMemory::Content {
  uint64_t sequence;
  JobRecord record;
};

Result<JobMemory> JobMemory::Create(const char* secret_variable) {
  std::array<Fd, 2> slots;
  for (Fd& slot : slots) {
    auto memory = CreateMemoryFile("rankrun-job");
    if (!memory) return std::move(memory).error();
    slot = std::move(*memory);
  }
  auto of_variable = KeptSecret::Create();
  auto of_file = KeptSecret::Create();
  if (!of_variable) return std::move(of_variable).error();
  if (!of_file) return std::move(of_file).error();
  if (secret_variable != nullptr) {
    auto taken = TakeVariable(secret_variable, *of_variable);
    if (!taken) return std::move(taken).error();
  }
  JobMemory memory(std::move(slots), {std::move(*of_variable), std::move(*of_file)});
  JobRecord first{.job_began = std::chrono::steady_clock::now()};
  if (!FillRandom(first.node_id)) return SystemError("make a random number", errno);
  if (auto written = memory.Write(first); !written) return std::move(written).error();
  return memory;
}

std::optional<JobMemory::Content> JobMemory::ReadSlot(size_t index) const {
  int fd = slots_[index].get();
  struct stat status;
  auto head = ReadAt(fd, 0, sizeof(SlotHeader));
  if (!head || fstat(fd, &status) != 0) return std::nullopt;
  SlotHeader header;
  std::memcpy(&header, head->data(), sizeof header);
  if (header.length > static_cast<uint64_t>(status.st_size)) return std::nullopt;
  auto bytes = ReadAt(fd, sizeof header, header.length);
  if (!bytes || Checksum(header.sequence, *bytes) != header.checksum) return std::nullopt;
  auto record = DecodeJobRecord(*bytes);
  if (!record) return std::nullopt;
  return Content{header.sequence, std::move(*record)};
}

JobRecord JobMemory::Read() const {
  auto first = ReadSlot(0);
  auto second = ReadSlot(1);
  bool is_second = second && (!first || second->sequence > first->sequence);
  auto& newest = is_second ? second : first;
  return newest ? std::move(newest->record) : JobRecord{};
}

Result<void> JobMemory::Write(const JobRecord& record) {
  auto first = ReadSlot(0);
  auto second = ReadSlot(1);
  uint64_t newest = std::max(first ? first->sequence : 0, second ? second->sequence : 0);
  bool newest_is_first = first && first->sequence == newest;
  std::string bytes = EncodeJobRecord(record);
  SlotHeader header{newest + 1, bytes.size(), Checksum(newest + 1, bytes)};
  std::string all(reinterpret_cast<const char*>(&header), sizeof header);
  return WriteFromStart(slots_[newest_is_first ? 1 : 0].get(), all + bytes);
}

}  // namespace rankrun::agent
