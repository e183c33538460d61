/* cpu_launch.h: a compiled graph in this process, ready to be launched on bound inputs, through the
 * runtime's own interface. */
#ifndef TEXO_DRIVER_CPU_LAUNCH_H
#define TEXO_DRIVER_CPU_LAUNCH_H

#include "driver/results.h"
#include "texo_rt.h"

typedef struct {
	texo_rt *rt;
	texo_program *program;
	texo_kernel *kernel;
	DLTensor *tensor;
	texo_arg *arg;
	uint32_t narg;
	void *workspace;
	size_t bytes;    /* of workspace */
	const char *device; /* NULL: the processor. Else by tensor: */
	struct DeviceMemory *memory;
	uint32_t ntensor;
	int64_t load_ns; /* what making the runtime and loading the code took */
} CpuLaunch;


typedef bool CpuLaunchFn(Session *s, CpuLaunch *l, void *user);

/* The threads that -j asks for; without it, one for each processor that the process may use. */
uint32_t cpu_threads(const Session *s);
/* Loads the code, makes memory for the results, and calls body. What the runtime owns is given back
 * however body ends. */
bool cpu_loaded(Session *s, const Binding *b, const LaunchCode *code, Results *out, CpuLaunchFn *body, void *user);
/* Workspace, and all else that a first launch would do. */
texo_status cpu_prepare(Session *s, CpuLaunch *l);
texo_status cpu_launch(CpuLaunch *l);
/* What a launch's status means: a failed check or access, which becomes a diagnostic and out->failed,
 * or a cut range, which only becomes one; else false with a problem. */
bool cpu_outcome(Session *s, CpuLaunch *l, texo_status status, const Graph *g, Diags *diags, Results *out);

/* --- device_memory.c: tensors on a GPU --- */
typedef struct DeviceMemory {
	void *host;
	size_t bytes;
	bool in, out; /* read by the graph; written by it */
} DeviceMemory;

/* Memory for the workspace and every tensor, which then are there, with what is read. */
texo_status device_move_in(CpuLaunch *l);
/* What is written, back to where it came from. */
texo_status device_move_out(CpuLaunch *l);
void device_free(CpuLaunch *l);

#endif
