#pragma once

#include <string_view>

namespace rankrun {

// What a connection of the control plane begins with, and no dialect of the
// store: one port serves both.
inline constexpr std::string_view kControlPreamble{"RKRN\r\n\0", 7};

}  // namespace rankrun
