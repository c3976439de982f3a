/* Built as strict C99: what c_api_test.cc does in C++ a C program can do. */
#include "tests/comm/c/c_api_worker.h"

#include <rankrun/rankrun.h>

const char* CApiWorker(double* sum) {
  double value = 1 + rankrun_global_rank(NULL);
  const rankrun_tensor tensor = {.data = &value, .count = 1, .dtype = RANKRUN_FLOAT64};
  const rankrun_reduce_op most = {.kind = RANKRUN_MAX};
  rankrun_init_options options;
  options.size = sizeof options;
  if (rankrun_init_options_default(&options) != RANKRUN_OK) return rankrun_last_error();
  options.timeout_ms = 60000;
  if (rankrun_init(&options) != RANKRUN_OK) return rankrun_last_error();
  value = 1 + rankrun_global_rank(NULL);
  if (rankrun_all_reduce(NULL, &tensor, NULL, RANKRUN_DEFAULT_TIMEOUT, NULL) != RANKRUN_OK ||
      rankrun_all_reduce(NULL, &tensor, &most, RANKRUN_DEFAULT_TIMEOUT, NULL) != RANKRUN_OK ||
      rankrun_destroy(NULL) != RANKRUN_OK) {
    return rankrun_last_error();
  }
  *sum = value;
  return "";
}
