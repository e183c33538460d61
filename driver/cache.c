/* cache.c: texo cache ACTION: what is in the folder of compiled code, and dropping it. Actions are rows. */
#include "driver/disk_cache.h"

#include <string.h>

typedef bool ActionFn(Session *s, const Store *store, const char **why);

static bool
print_path(Session *s, const Store *store, const char **why)
{
	(void)why;
	if (!option_on(s->options, OPT_JSON)) {
		text_printf(&s->out, "%s\n", store->path);
		return true;
	}
	text_printf(&s->out, "{\"path\":");
	text_json(&s->out, store->path, strlen(store->path));
	text_printf(&s->out, "}\n");
	return true;
}

static bool
print_info(Session *s, const Store *store, const char **why)
{
	StoreList list;
	Text *out = &s->out;
	if (!store_list(store, &s->arena, &list, why))
		return false;
	uint32_t aside = list.file.n - list.nentry;
	if (option_on(s->options, OPT_JSON)) {
		text_printf(out, "{\"path\":");
		text_json(out, store->path, strlen(store->path));
		text_printf(out, ",\"entries\":%u,\"bytes\":%llu,\"limit\":%llu,\"unfinished\":%u}\n", list.nentry,
		            (unsigned long long)list.bytes, (unsigned long long)store->limit, aside);
		return true;
	}
	text_printf(out, "%s\n%u entr%s, %.1f MiB of at most %.0f MiB\n", store->path, list.nentry, list.nentry == 1 ? "y" : "ies",
	            (double)list.bytes / 0x1p20, (double)store->limit / 0x1p20);
	if (aside)
		text_printf(out, "%u being written, or left behind by what was killed\n", aside);
	return true;
}

static bool
drop(Session *s, const Store *store, uint64_t limit, const char **why)
{
	StoreList dropped;
	if (!store_prune(store, &s->arena, limit, &dropped, why))
		return false;
	if (option_on(s->options, OPT_JSON))
		text_printf(&s->out, "{\"dropped\":%u,\"bytes\":%llu}\n", dropped.nentry, (unsigned long long)dropped.bytes);
	else
		say_note(s, "%u entr%s dropped, %.1f MiB", dropped.nentry, dropped.nentry == 1 ? "y" : "ies", (double)dropped.bytes / 0x1p20);
	return true;
}

static bool
prune(Session *s, const Store *store, const char **why)
{
	return drop(s, store, store->limit, why);
}

static bool
clear(Session *s, const Store *store, const char **why)
{
	return drop(s, store, 0, why);
}

static const struct {
	const char *name;
	ActionFn *run;
} action_table[] = {{"path", print_path}, {"info", print_info}, {"prune", prune}, {"clear", clear}};

ExitCode
command_cache(Session *s, void *arg)
{
	const char *action = s->options->operand.at[0], *why = NULL;
	Store store;
	(void)arg;
	if (!disk_cache_place(s, &store)) {
		problem(&s->problem, EXIT_IO, "there is no place for the cache");
		problem_help(&s->problem, "set HOME, XDG_CACHE_HOME or TEXO_CACHE");
		return session_fail(s);
	}
	for (unsigned k = 0; k < sizeof action_table / sizeof *action_table; k++)
		if (strcmp(action, action_table[k].name) == 0) {
			if (action_table[k].run(s, &store, &why))
				return EXIT_OK;
			problem(&s->problem, EXIT_IO, "%s", why);
			return session_fail(s);
		}
	problem(&s->problem, EXIT_USAGE, "there is no action '%s'", action);
	problem_help(&s->problem, "texo cache takes path, info, prune or clear");
	return session_fail(s);
}
