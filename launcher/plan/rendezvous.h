#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/settings/note.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Address at which the workers of a job meet.
struct Rendezvous {
  std::optional<std::string> address;  // MASTER_ADDR, if a setting gives it
  std::optional<uint16_t> port;        // MASTER_PORT; nothing: a free port for each attempt
  std::string address_origin;          // as Settings::OriginOf
  std::string port_origin;
  std::string run_id;  // empty: not set
  std::vector<Note> ignored;
};

// Returns the full name of this host; empty if it has none with an address of this host.
using FullHostName = std::function<std::string()>;

// Reads --node-rank, --standalone, --rdzv-*, --master-* and --local-addr of a
// job of one node by the rules of torchrun. With a dynamic backend, `full_name`
// is the address unless --local-addr gives one; without `full_name`, by the name
// rankrun, there is none. Pure, except for `full_name`.
// Errors: kInvalid, one line.
Result<Rendezvous> ReadRendezvous(const Settings& settings, const FullHostName& full_name = {});

// Reads --rdzv-backend: "static" or "c10d"; with --standalone also "etcd" and
// "etcd-v2". Pure. Errors: kInvalid.
Result<std::string> ReadRdzvBackend(const Settings& settings);

// Reads --rdzv-id. Pure. Errors: kInvalid.
Result<std::string> ReadRunId(const Settings& settings);

}  // namespace rankrun::launcher
