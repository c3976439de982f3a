#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/note.h"
#include "launcher/settings.h"

namespace rankrun::launcher {

// Where the workers of one node meet.
struct Rendezvous {
  std::optional<std::string> address;  // typed: MASTER_ADDR
  std::optional<uint16_t> port;        // typed: MASTER_PORT; nothing: a free one per attempt
  std::string address_origin;          // which setting, as Settings has it
  std::string port_origin;
  std::string run_id;  // empty: none was chosen
  std::vector<Note> ignored;
};

// Reads --nnodes, --node-rank, --standalone, --rdzv-*, --master-* and
// --local-addr, whose rules are torchrun's. Pure.
// Errors: kInvalid, one line; more than one node among them.
Result<Rendezvous> ReadRendezvous(const Settings& settings);

}  // namespace rankrun::launcher
