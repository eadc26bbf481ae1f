#include "settings.h"

#include <stdlib.h>
#include <string.h>

static const char *settings; /* of perflaw attach; NULL: they are in the environment */

void settings_take(const char *given) { settings = given; }

const char *setting(const char *name) {
    for (const char *at = settings; at && *at;) {
        const char *value = at + strlen(at) + 1;
        if (!strcmp(at, name)) return value;
        at = value + strlen(value) + 1;
    }
    const char *value = settings ? NULL : getenv(name);
    return value ? value : "";
}
