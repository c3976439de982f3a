#include "comm/rpc/members.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace rankrun::comm::rpc {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxRemoved = 32;

Error Invalid(const std::string& message) { return {ErrorCode::kInvalid, message}; }

int LowestFree(const Members& members) {
  int id = 0;
  while (members.Find(id) != nullptr) ++id;
  return id;
}

}  // namespace

const Member* Members::Find(int id) const {
  auto found = std::find_if(list.begin(), list.end(),
                            [&](const Member& each) { return each.worker.id == id; });
  return found != list.end() ? &*found : nullptr;
}

bool Members::Has(const Member& member) const {
  return std::find(list.begin(), list.end(), member) != list.end();
}

std::string Members::RemoverOf(const Member& member) const {
  auto found = std::find_if(removed.begin(), removed.end(),
                            [&](const Removal& each) { return each.joined == member.joined; });
  return found != removed.end() ? found->by : "";
}

std::vector<WorkerDevices> Members::Devices() const {
  std::vector<WorkerDevices> devices;
  for (const Member& each : list) devices.push_back(each.devices);
  return devices;
}

std::string TextOf(const Members& members) {
  Json list = Json::array();
  for (const Member& each : members.list) {
    list.push_back({{"id", each.worker.id},
                    {"name", each.worker.name},
                    {"joined", each.joined},
                    {"devices", TextOf(each.devices)},
                    {"beacon", each.beacon}});
  }
  Json removed = Json::array();
  for (const Removal& each : members.removed) removed.push_back({each.joined, each.by});
  const Json all{
      {"version", members.version}, {"workers", std::move(list)}, {"removed", std::move(removed)}};
  // A worker that joins takes dead ones off before its own name is checked.
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Members> MembersIn(const std::string& text) {
  try {
    Json json = Json::parse(text);
    Members members{.version = json.at("version").get<int64_t>()};
    for (const Json& each : json.at("workers")) {
      auto devices = WorkerDevicesIn(each.at("devices").get<std::string>());
      if (!devices) return std::move(devices).error();
      members.list.push_back({{each.at("id").get<int>(), each.at("name").get<std::string>()},
                              each.at("joined").get<int64_t>(),
                              *std::move(devices),
                              each.at("beacon").get<std::string>()});
    }
    for (const Json& each : json.at("removed")) {
      members.removed.push_back({each.at(0).get<int64_t>(), each.at(1).get<std::string>()});
    }
    return members;
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kProtocol,
                 "the store has no list of RPC's workers: " + std::string(error.what())};
  }
}

Result<Members> With(Members members, Worker worker, WorkerDevices devices, std::string beacon) {
  if (worker.id == -1) worker.id = LowestFree(members);
  if (worker.id < 0)
    return Invalid("the rank is " + std::to_string(worker.id) + ": want 0 or more");
  Roster roster;
  for (const Member& each : members.list) {
    if (auto ok = roster.Add(each.worker); !ok) return std::move(ok).error();
  }
  if (auto ok = roster.Add(worker); !ok) return std::move(ok).error();
  devices.worker = worker.name;
  members.version += 1;
  members.list.push_back(
      {std::move(worker), members.version, std::move(devices), std::move(beacon)});
  if (auto ok = CheckDeviceMaps(members.Devices(), false); !ok) return std::move(ok).error();
  return members;
}

Members Without(Members members, const Member& member, const std::string& by) {
  if (!by.empty() && members.Has(member)) {
    if (members.removed.size() == kMaxRemoved) members.removed.erase(members.removed.begin());
    members.removed.push_back({member.joined, by});
  }
  std::erase(members.list, member);
  members.version += 1;
  return members;
}

}  // namespace rankrun::comm::rpc
