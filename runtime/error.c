/* error.c: the calling thread's last error, and the names of statuses. */
#include <stdarg.h>
#include <stdio.h>

#include "runtime/inside.h"
#include "runtime/private.h"

static _Thread_local char last_error[512];

texo_status
rt_fail(texo_status s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(last_error, sizeof last_error, fmt, ap);
	va_end(ap);
	return s;
}

texo_status
texo_private_fail(texo_status s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(last_error, sizeof last_error, fmt, ap);
	va_end(ap);
	return s;
}

const char *
texo_last_error(void)
{
	return last_error;
}

const char *
texo_status_name(texo_status s)
{
	switch (s) {
	case TEXO_OK: return "OK";
	case TEXO_INVALID: return "INVALID";
	case TEXO_COMPILE_ERROR: return "COMPILE_ERROR";
	case TEXO_CHECK_FAILED: return "CHECK_FAILED";
	case TEXO_FAULT: return "FAULT";
	case TEXO_NO_MEMORY: return "NO_MEMORY";
	case TEXO_NO_DEVICE: return "NO_DEVICE";
	case TEXO_DEVICE_LOST: return "DEVICE_LOST";
	case TEXO_BAD_ARTEFACT: return "BAD_ARTEFACT";
	case TEXO_NOT_FOUND: return "NOT_FOUND";
	case TEXO_NOT_BUILT: return "NOT_BUILT";
	case TEXO_LIMIT: return "LIMIT";
	case TEXO_IO: return "IO";
	case TEXO_INTERNAL: return "INTERNAL";
	}
	return "unknown status";
}
