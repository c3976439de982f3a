#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/note.h"
#include "launcher/settings.h"

namespace rankrun::launcher {

// Where workers meet.
struct Rendezvous {
  std::optional<std::string> address;  // typed: MASTER_ADDR
  std::optional<uint16_t> port;        // typed: MASTER_PORT; nothing: a free one per attempt
  std::string address_origin;          // which setting, as Settings has it
  std::string port_origin;
  std::string run_id;  // empty: none was chosen
  std::vector<Note> ignored;
};

// Reads --node-rank, --standalone, --rdzv-*, --master-* and --local-addr for
// the workers of one node. The rules are torchrun's. Pure.
// Errors: kInvalid, one line.
Result<Rendezvous> ReadRendezvous(const Settings& settings);

// Reads --rdzv-backend: "static" or "c10d"; with --standalone any. Pure.
// Errors: kInvalid; etcd among them.
Result<std::string> ReadRdzvBackend(const Settings& settings);

// Reads --rdzv-id. Pure. Errors: kInvalid.
Result<std::string> ReadRunId(const Settings& settings);

}  // namespace rankrun::launcher
