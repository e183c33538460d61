/* aot_softmax.c: a program with softmax compiled into it, ahead of time.
 *
 *     texo build examples/softmax.tex --graph=softmax_rows --threads=1 -o softmax
 *     cc -I. examples/embed/aot_softmax.c softmax.o -lm -o aot_softmax
 *     ./aot_softmax
 *
 * It prints the rows of softmax([[0, 1, 2], [3, 3, 3]]) and their sums. */
#include <stdio.h>
#include <stdlib.h>

#include "softmax.h"

enum { ROWS = 2, COLUMNS = 3 };

int
main(void)
{
	const float x[ROWS * COLUMNS] = {0, 1, 2, 3, 3, 3};
	float y[ROWS * COLUMNS];
	size_t bytes = softmax_rows_workspace(ROWS, COLUMNS);
	void *workspace = bytes ? aligned_alloc(64, bytes) : NULL; /* a multiple of 64 */
	int status = softmax_rows(x, y, ROWS, COLUMNS, workspace);
	free(workspace);
	if (status) {
		fprintf(stderr, "softmax_rows returned %d\n", status);
		return 1;
	}
	for (int i = 0; i < ROWS; i++) {
		double sum = 0;
		for (int j = 0; j < COLUMNS; j++) {
			printf("%.6f ", (double)y[i * COLUMNS + j]);
			sum += (double)y[i * COLUMNS + j];
		}
		printf("= %.6f\n", sum);
	}
	return 0;
}
