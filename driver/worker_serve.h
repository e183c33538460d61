/* worker_serve.h: the command as a worker of libtexo (driver/api/worker.h). */
#ifndef TEXO_DRIVER_WORKER_SERVE_H
#define TEXO_DRIVER_WORKER_SERVE_H

/* Answers the one request that comes by descriptor 0; what main returns. */
int worker_serve(void);

#endif
