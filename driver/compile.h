/* compile.h: the stages as the command's options want them; what goes wrong becomes a problem. */
#ifndef TEXO_DRIVER_COMPILE_H
#define TEXO_DRIVER_COMPILE_H

#include "driver/session.h"
#include "driver/stages.h"

/* Reads the file ("-": standard input). */
bool compile_open(Session *s, const char *path, SourceUnit *out);
/* The same for a text that was read before. */
void compile_begin(Session *s, const char *path, const char *text, size_t n, SourceUnit *out);
/* Parses and checks it; -D, --fp and --werror count, fp (not NULL) beats --fp. */
void compile_unit(Session *s, SourceUnit *u, const FpMode *fp);
/* The graph of this name; NULL name: the only one, else the last. NULL with a problem. */
Graph *compile_pick(Session *s, const SourceUnit *u, const char *name);

/* --dump, --stop, --skip, --fuel, --remarks, --time, --verify, and what the target offers. */
bool compile_pass_options(Session *s, PassOptions *out);
/* The same for this processor. */
bool compile_pass_options_for(Session *s, const char *cpu, PassOptions *out);
/* The processor or GPU that --target names ("host" for cpu), else the one of --device, or one of the targets it lists; NULL with a problem. */
const char *compile_cpu_name(Session *s);
const char *compile_cpu_named(Session *s, const char *target);
/* Passes and plan; what they say goes to standard error. NULL after --stop. */
Program *compile_program(Session *s, Graph *g, const PassOptions *o);
bool compile_code(Session *s, const Program *p, const CodegenOptions *o, CodegenResult *out);

#endif
