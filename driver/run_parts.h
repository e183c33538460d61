/* run_parts.h: what run, test and explain share about devices and operands. */
#ifndef TEXO_DRIVER_RUN_PARTS_H
#define TEXO_DRIVER_RUN_PARTS_H

#include "driver/input_spec.h"
#include "driver/session.h"

typedef enum { DEVICE_CPU, DEVICE_INTERP, DEVICE_CUDA } RunDevice;

/* --device. For cuda s->device and s->gpu are set, or it is a problem: the driver or the device is missing. */
bool device_parse(Session *s, RunDevice *out);
/* name=value operands. */
bool session_specs(Session *s, const char *const *operand, uint32_t n, InputSpec **out);

#endif
