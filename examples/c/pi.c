/* The C ABI: all ranks integrate 4 / (1 + x^2) from 0 to 1 together; while the
   sums are added up, each sends its number to the next one.

     rankrun -n 4 pi
     cc -std=c99 pi.c $(pkg-config --cflags --libs rankrun)  */

#include <stdio.h>
#include <stdlib.h>

#include <rankrun/rankrun.h>

static void check(rankrun_status status) {
  if (status == RANKRUN_OK) return;
  fprintf(stderr, "pi: %s\n", rankrun_last_error());
  exit(1);
}

/* This rank's part: each n-th of `steps` rectangles. */
static double integrate(long steps, int rank, int ranks) {
  double sum = 0;
  for (long i = rank; i < steps; i += ranks) {
    const double x = ((double)i + 0.5) / (double)steps;
    sum += 4 / (1 + x * x);
  }
  return sum / (double)steps;
}

int main(void) {
  check(rankrun_init(NULL)); /* NULL: everything from the environment */
  const int rank = rankrun_global_rank(NULL);
  const int ranks = rankrun_world_size(NULL);

  double pi = integrate(1000000, rank, ranks);
  const rankrun_tensor tensor = {.data = &pi, .count = 1, .dtype = RANKRUN_FLOAT64};
  rankrun_work *work;
  check(rankrun_all_reduce(NULL, &tensor, NULL, RANKRUN_DEFAULT_TIMEOUT, &work));

  int seen[2] = {rank, -1};
  const rankrun_message messages[2] = {
      {.tensor = {.data = &seen[0], .count = 1, .dtype = RANKRUN_INT32},
       .is_send = 1,
       .peer = (rank + 1) % ranks},
      {.tensor = {.data = &seen[1], .count = 1, .dtype = RANKRUN_INT32},
       .peer = RANKRUN_ANY_SOURCE}};
  rankrun_work *exchange[2];
  check(rankrun_batch(NULL, messages, 2, exchange));
  for (int i = 0; i < 2; ++i) {
    check(rankrun_work_wait(exchange[i]));
    rankrun_work_release(exchange[i]);
  }
  check(rankrun_work_wait(work));
  rankrun_work_release(work);

  const double error = pi - 3.14159265358979;
  const int good = error < 1e-9 && error > -1e-9 && seen[1] == (rank + ranks - 1) % ranks;
  printf("rank %d of %d, after rank %d: pi is %.9f: %s\n", rank, ranks, seen[1], pi,
         good ? "right" : "WRONG");
  check(rankrun_destroy(NULL));
  return good ? 0 : 1;
}
