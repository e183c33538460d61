/* fake_driver.h: fake_cuda.c, where a test has it as libcuda.so.1. */
#ifndef TEXO_TESTS_RUNTIME_FAKE_DRIVER_H
#define TEXO_TESTS_RUNTIME_FAKE_DRIVER_H

#include <stdbool.h>

#include "tests/runtime/fake_cuda.h"

extern FakeCuda *fake;

/* Whether there is a driver at all, for tests that want none. */
bool any_driver(void);
/* False, and a line is printed, when there is none or it is another one. */
bool fake_find(void);
/* The driver's function of that name. */
void (*fake_function(const char *name))(void);
/* The driver as it is at first: one GPU, which computes nothing. */
void fake_clear(void);
void nothing_alive(void);

#endif
