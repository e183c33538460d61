/* run_parts.h: what run, test and explain share about devices and operands. */
#ifndef TEXO_DRIVER_RUN_PARTS_H
#define TEXO_DRIVER_RUN_PARTS_H

#include "driver/input_spec.h"
#include "driver/session.h"

typedef enum { DEVICE_CPU, DEVICE_INTERP } RunDevice;

/* --device; a problem for cuda, which does not exist yet. */
bool device_parse(Session *s, RunDevice *out);
/* name=value operands. */
bool session_specs(Session *s, const char *const *operand, uint32_t n, InputSpec **out);

#endif
