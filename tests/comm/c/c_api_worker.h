#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* The life of a worker; gives the sum of all ranks' numbers, which are from 1,
   and an error's text. */
const char* CApiWorker(double* sum);

#ifdef __cplusplus
}
#endif
