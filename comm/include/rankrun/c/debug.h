#pragma once

#include <rankrun/c/types.h>

// C form of diagnosis/debug.h.

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rankrun_debug_level {
  RANKRUN_DEBUG_OFF = 0,
  RANKRUN_DEBUG_INFO = 1,
  RANKRUN_DEBUG_DETAIL = 2
} rankrun_debug_level;

// `level` is a rankrun_debug_level.
RANKRUN_API rankrun_status rankrun_get_debug_level(int* level);
RANKRUN_API rankrun_status rankrun_set_debug_level(int level);
RANKRUN_API rankrun_status rankrun_set_debug_level_from_env(void);

#ifdef __cplusplus
}
#endif
