#include "selection.h"

#include <stdio.h>

#include "definitions.h"
#include "questions.h"

#define MAGIC 0x314c455346525046ull /* "FPRFSEL1" */
enum { MAX_FILES = 256 };

typedef struct Place {
    uint64_t offset; /* from where the file is loaded */
    uint32_t size, selected; /* UNSELECTED and so on */
} Place;
typedef struct Selection {
    uint64_t magic, count;
    uint32_t others; /* whether functions without a place are recorded */
    uint32_t apart;  /* whether no selected function was inlined into another one */
    Place places[];
} Selection;
typedef struct LoadedFile {
    const void *base;
    const Selection *selection;
    Answer answer; /* that holds it */
} LoadedFile;

static LoadedFile files[MAX_FILES]; /* a forked child has these mappings too */
static int file_count;

/* The selection in the recorder's answer for a file; NULL if it gives none. */
static const Selection *ask(const char *name, Answer *answer) {
    char text[4096 + 16];
    snprintf(text, sizeof text, "functions %s", name);
    *answer = question_ask(text);
    const Selection *selection = answer->data;
    if (!selection || answer->size < sizeof *selection || selection->magic != MAGIC) return NULL;
    return selection->count <= (answer->size - sizeof *selection) / sizeof(Place) ? selection : NULL;
}

static const Selection *selection_of(const void *base, const char *name) {
    for (int at = 0; at < file_count; at++)
        if (files[at].base == base) return files[at].selection;
    Answer answer;
    const Selection *selection = ask(name, &answer);
    if (!selection) recording_stop("the recorder did not say which functions to record");
    else if (file_count < MAX_FILES) files[file_count++] = (LoadedFile){base, selection, answer};
    return selection;
}

static const Place *place_at(const Selection *selection, uint64_t offset) {
    uint64_t low = 0, high = selection->count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (selection->places[middle].offset < offset) low = middle + 1;
        else high = middle;
    }
    return low < selection->count && selection->places[low].offset == offset ? &selection->places[low] : NULL;
}

int selection_find(const void *function, const LoadedPlace *loaded, uint32_t *size) {
    const Selection *selection = selection_of(loaded->base, loaded->file);
    if (!selection) return UNSELECTED;
    const Place *place = place_at(selection, (uint64_t)((const char *)function - (const char *)loaded->base));
    if (!place) return (int)selection->others;
    *size = place->size;
    return (int)place->selected;
}

int selection_is_apart(const LoadedPlace *loaded) {
    const Selection *selection = selection_of(loaded->base, loaded->file);
    return selection && selection->apart;
}

void selection_forget(void) {
    while (file_count) question_drop(files[--file_count].answer);
}
