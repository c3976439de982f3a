#pragma once

// Marks what librankrun.so exports for the libraries above it that are built with it
// (librankrun_rpc.so). It is in no public header and changes with each version.
#define RANKRUN_PRIVATE_API __attribute__((visibility("default")))
