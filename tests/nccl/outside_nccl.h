#pragma once

namespace rankrun::comm {

// Registers the NCCL plug-in once more, by rankrun/device_backend.h and the name
// "outside".
void RegisterNcclFromOutside();

}  // namespace rankrun::comm
