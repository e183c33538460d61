/* process.h: what the tests of workers want to know of their process, and the programs they put in a worker's place. */
#ifndef TEXO_TESTS_LIBRARY_PROCESS_H
#define TEXO_TESTS_LIBRARY_PROCESS_H

/* How many files the process has open. */
unsigned process_open_files(void);
/* A program at another path. */
void process_copy_program(const char *from, const char *to);

#endif
