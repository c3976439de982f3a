#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/rpc/device_maps.h"
#include "comm/rpc/roster.h"

// Workers of a group that they join and leave, as the group's store has them. Pure.
namespace rankrun::comm::rpc {

struct Member {
  Worker worker;
  int64_t joined;  // version of the group that it made; no other member ever has it
  WorkerDevices devices = {};
  std::string beacon = {};  // address at which its process accepts connections

  bool operator==(const Member&) const = default;
};

// Member that another worker has taken off the list.
struct Removal {
  int64_t joined;
  std::string by;  // name of the other worker

  bool operator==(const Removal&) const = default;
};

struct Members {
  int64_t version = 0;                // grows with each change
  std::vector<Member> list = {};      // in the order in which they joined
  std::vector<Removal> removed = {};  // the last ones

  bool operator==(const Members&) const = default;

  const Member* Find(int id) const;
  bool Has(const Member& member) const;
  // Returns the name of the worker that has taken a member off the list; empty: not known.
  std::string RemoverOf(const Member& member) const;
  std::vector<WorkerDevices> Devices() const;
};

// Returns the text that the store has. Errors: kProtocol for a text of another kind.
std::string TextOf(const Members& members);
Result<Members> MembersIn(const std::string& text);

// Return the next version of the group. An id of -1 becomes the lowest free one.
// Errors: kInvalid for a wrong name, or if another member has the name or the id; those of
// CheckDeviceMaps.
Result<Members> With(Members members, Worker worker, WorkerDevices devices = {},
                     std::string beacon = {});
// `by`: the worker that takes it off; empty: the member leaves.
Members Without(Members members, const Member& member, const std::string& by = {});

}  // namespace rankrun::comm::rpc
