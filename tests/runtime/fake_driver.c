/* fake_driver.c: see fake_driver.h. */
#include "tests/runtime/fake_driver.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

FakeCuda *fake;

bool
any_driver(void)
{
	return dlopen("libcuda.so.1", RTLD_NOW) != NULL;
}

void (*fake_function(const char *name))(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *at = driver ? dlsym(driver, name) : NULL;
	void (*f)(void);
	memcpy(&f, &at, sizeof f);
	return f;
}

bool
fake_find(void)
{
	FakeCudaFn *get = (FakeCudaFn *)fake_function("fake_cuda");
	if (!get) {
		printf("libcuda.so.1 is not the one for tests\n");
		return false;
	}
	fake = get();
	return true;
}

void
fake_clear(void)
{
	*fake = (FakeCuda){.devices = 1, .major = 9, .processors = 132, .version = 13000};
}

void
nothing_alive(void)
{
	assert_int_equal(fake->contexts, 0);
	assert_int_equal(fake->pushed, 0);
	assert_int_equal(fake->modules, 0);
	assert_int_equal(fake->events, 0);
	assert_int_equal(fake->links, 0);
	assert_int_equal(fake->allocations, 0);
	assert_int_equal(fake->misuse, 0);
}
