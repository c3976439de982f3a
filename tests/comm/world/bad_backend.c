/* A plug-in that the library must refuse: librankrun_bad_backend.so. The variable
   RANKRUN_TEST_ENTRY says what is wrong with it. */

#include <rankrun/backend.h>
#include <rankrun/device_backend.h>
#include <stdlib.h>
#include <string.h>

RANKRUN_API const rankrun_backend *rankrun_backend_entry(void) {
  static rankrun_backend backend;
  const char *wrong = getenv("RANKRUN_TEST_ENTRY");
  if (strcmp(wrong, "null") == 0) return NULL;
  backend.size = sizeof backend;
  backend.version = RANKRUN_BACKEND_VERSION + 1;
  return &backend;
}

RANKRUN_API const rankrun_device_backend *rankrun_device_backend_entry(void) {
  static rankrun_device_backend backend;
  const char *wrong = getenv("RANKRUN_TEST_ENTRY");
  if (strcmp(wrong, "null") == 0) return NULL;
  backend.size = sizeof backend;
  backend.version = RANKRUN_DEVICE_BACKEND_VERSION + 1;
  return &backend;
}
