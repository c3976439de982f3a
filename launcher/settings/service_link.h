#pragma once

#include <string_view>

namespace rankrun::launcher {

// Returns whether Kubernetes or Docker has set this variable, to announce a
// Service. A Service named "rankrun-master" gives every pod
// RANKRUN_MASTER_PORT=tcp://10.96.1.5:29400, RANKRUN_MASTER_SERVICE_HOST and
// more. Pure.
// Source: kubernetes.io/docs/concepts/services-networking/service,
// "Environment variables".
bool IsServiceLink(std::string_view name, std::string_view value);

}  // namespace rankrun::launcher
