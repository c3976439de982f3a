#pragma once

#include <span>

#include "launcher/flags/flag_table.h"

// The parts of rankrun's table of flags, in the order of --help.
namespace rankrun::launcher {

std::span<const Flag> JobFlags();          // Workers, Program
std::span<const Flag> NodeFlags();         // Several nodes, Rendezvous
std::span<const Flag> OutputFlags();       // Output
std::span<const Flag> SupervisionFlags();  // Failures and termination, Command line

}  // namespace rankrun::launcher
