/* diag_entries.c: see diag_entries.h. */
#include "driver/diag_entries.h"

#include <string.h>

void
diag_entries_add(Text *json, const char *object)
{
	const char *from = strchr(object, '['), *to = strrchr(object, ']');
	if (!from || !to || to <= from + 1)
		return;
	if (json->n)
		text_add(json, ",", 1);
	text_add(json, from + 1, (size_t)(to - from - 1));
}

void
diag_entries_plain(Text *json, const char *code, const char *path, const char *message, const char *help)
{
	text_printf(json, "%s{\"code\":\"%s\",\"severity\":\"error\",\"file\":", json->n ? "," : "", code);
	text_json(json, path, strlen(path));
	text_printf(json, ",\"line\":1,\"column\":1,\"end_column\":1,\"message\":");
	text_json(json, message, strlen(message));
	text_printf(json, ",\"help\":");
	text_json(json, help ? help : "", help ? strlen(help) : 0);
	text_printf(json, "}");
}
