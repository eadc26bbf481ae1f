/* Which probes there are, and which of them are enabled from the start. */
#ifndef PERFLAW_REGISTER_H
#define PERFLAW_REGISTER_H

#include "area.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether $PERFLAW_PROBES_ENABLE asks for a probe. It is "*", or ids and names with commas between. */
PERFLAW_SLOW int perflaw_is_requested(uint32_t id, const char *name) {
    char digits[16];
    perflaw_text number = {digits, digits + sizeof digits - 1};
    perflaw_text_add_number(&number, id);
    for (const char *at = perflaw_environment("PERFLAW_PROBES_ENABLE"); at;) {
        size_t length = strcspn(at, ",");
        if (length == 1 && *at == '*') return 1;
        if (length == strlen(digits) && !strncmp(at, digits, length)) return 1;
        if (name && *name && length == strlen(name) && !strncmp(at, name, length)) return 1;
        at = at[length] ? at + length + 1 : NULL;
    }
    return 0;
}

/* Store a text in an entry, cut if it is long, unless one is there. Gives whether a different one was there. */
PERFLAW_SLOW int perflaw_store_text(char *kept, size_t size, const char *text) {
    if (!text || !*text) return 0;
    if (*kept) return strncmp(kept, text, size - 1) != 0;
    for (size_t at = 0; at < size - 1 && text[at]; at++) kept[at] = text[at];
    return 0;
}

/* Register a probe: its type (0 if only its name is known here) and its texts (NULL if there is none). What was
 * registered first stays; whoever differs marks the entry as a conflict. Several libraries, and threads, may do so
 * at once. */
PERFLAW_SLOW void perflaw_register(uint32_t id, uint32_t type, const char *name, const char *unit, const char *fields) {
    perflaw_head *head = perflaw_process.head;
    if (!head || id >= PERFLAW_MAX_PROBES) return;
    perflaw_entry *entry = perflaw_process.entries + id;
    unsigned char *parts = (unsigned char *)&entry->control, none = 0;
    int differs = type && !__atomic_compare_exchange_n(&parts[2], &none, (unsigned char)type, 0, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED) && none != type;
    differs |= perflaw_store_text(entry->name, sizeof entry->name, name);
    differs |= perflaw_store_text(entry->unit, sizeof entry->unit, unit);
    differs |= perflaw_store_text(entry->fields, sizeof entry->fields, fields);
    if (differs && !__atomic_exchange_n(&parts[3], (unsigned char)1, __ATOMIC_RELAXED))
        __atomic_fetch_add(&head->conflicts, 1u, __ATOMIC_RELAXED);
    if (!__atomic_exchange_n(&parts[1], (unsigned char)1, __ATOMIC_RELAXED) || name)
        if (head->enable_all || perflaw_is_requested(id, name))
            __atomic_store_n(&parts[0], (unsigned char)1, __ATOMIC_RELAXED);
}

/* Register all probes of this program or library, whether they are ever executed or not. */
PERFLAW_SLOW void perflaw_register_sites(void) {
    for (const perflaw_site *site = __start_perflaw_sites; site < __stop_perflaw_sites; site++)
        perflaw_register(site->id, site->type, NULL, NULL, NULL);
}

/* A fork's child goes on as its parent was: the same probes under the same names, and the same of them enabled. */
PERFLAW_SLOW void perflaw_inherit(perflaw_entry *entries, perflaw_head *head, const perflaw_head *parents) {
    const perflaw_entry *theirs = (const perflaw_entry *)(const void *)(parents + 1);
    head->conflicts = parents->conflicts;
    head->enable_all = parents->enable_all;
    for (int id = 0; id < PERFLAW_MAX_PROBES; id++) {
        entries[id] = theirs[id];
        entries[id].refused = 0;
    }
}

#ifdef __cplusplus
}
#endif
#endif
