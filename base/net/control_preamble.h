#pragma once

#include <string_view>

namespace rankrun {

// First bytes of each connection of the control plane. No dialect of the store
// begins like this, so that one port serves both.
inline constexpr std::string_view kControlPreamble{"RKRN\r\n\0", 7};

}  // namespace rankrun
