#pragma once

// Marks what librankrun.so exports; everything else in it is hidden.
#define RANKRUN_API __attribute__((visibility("default")))
