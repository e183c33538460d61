/* tensor_title.h: what a tensor of a plan is called to the user, who named only some. */
#ifndef TEXO_DRIVER_TENSOR_TITLE_H
#define TEXO_DRIVER_TENSOR_TITLE_H

#include "passes/cost/work_count.h"

/* By tensor: its name, or what it is and which definition it is there for, as in "sum[k] of g (line 21)"; a second one
 * of that description is "sum[k] 2 of g (line 21)". Lines are those of `file`. */
const char **tensor_titles(const UseTable *uses, FileId file, Arena *a);
/* The line that defines the tensor; for what a function of another file brought in, that of the definition it is there
 * for, else the graph's. */
uint32_t tensor_line(const UseTable *uses, FileId file, TensorId t);

#endif
