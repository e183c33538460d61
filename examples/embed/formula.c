/* formula.c: compiles a formula that the user types, while the program runs, and applies it.
 *
 *   formula 'y[i] = exp(x[i]) / sum[k](exp(x[k]))' 1 2 3
 *
 * x holds the numbers that follow, y is the result. A formula in error is answered with what is wrong
 * and where. Build it with
 *
 *   cc formula.c $(pkg-config --cflags --libs texo) -o formula */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <texo.h>

static int
failed(const char *what, texo_status s)
{
	fprintf(stderr, "%s: %s: %s\n", what, texo_status_name(s), texo_last_error());
	return 1;
}

static void
show_diagnostics(const texo_module *m)
{
	for (size_t i = 0; i < texo_module_diagnostic_count(m); i++) {
		texo_diagnostic d = TEXO_INIT(texo_diagnostic);
		if (texo_module_get_diagnostic(m, i, &d) == TEXO_OK)
			fputs(d.rendered, stderr);
	}
}

/* y = kernel(x), n numbers each. */
static texo_status
apply(texo_kernel *kernel, float *x, float *y, int64_t n)
{
	DLTensor in = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n};
	DLTensor out = in;
	out.data = y;
	texo_arg args[] = {{.tensor = &in}, {.tensor = &out}};
	size_t bytes;
	texo_status s = texo_kernel_workspace(kernel, args, 2, &bytes);
	if (s)
		return s;
	void *workspace = bytes ? aligned_alloc(64, bytes) : NULL; /* bytes is a multiple of 64 */
	s = texo_kernel_launch(kernel, args, 2, workspace, NULL);
	free(workspace);
	return s;
}

static int
run(const texo_module *m, char **number, int n)
{
	float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
	texo_kernel *kernel;
	for (int i = 0; i < n; i++)
		x[i] = strtof(number[i], NULL);
	texo_status s = texo_module_get_kernel(m, "typed", &kernel);
	if (!s)
		s = apply(kernel, x, y, n);
	for (int i = 0; !s && i < n; i++)
		printf("%g%c", y[i], i + 1 < n ? ' ' : '\n');
	free(x);
	free(y);
	return s ? failed("launch", s) : 0;
}

int
main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s FORMULA NUMBER...\n", argv[0]);
		return 2;
	}
	size_t room = strlen(argv[1]) + 100;
	char *text = malloc(room);
	snprintf(text, room, "use \"std\"\ngraph typed(x: f32[N]) -> (y: f32[N]) {\n  %s\n}\n", argv[1]);
	texo_ctx *ctx;
	texo_module *m = NULL;
	texo_status s = texo_ctx_create(NULL, &ctx);
	if (s)
		return failed("context", s);
	s = texo_compile_string(ctx, text, strlen(text), "formula", NULL, &m);
	show_diagnostics(m);
	int code = s ? failed("compile", s) : run(m, argv + 2, argc - 2);
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	free(text);
	return code;
}
