#include "superinstructions.h"

#if HAS_SUPERINSTRUCTIONS

#define NEED_OPCODE_TABLES
#include <internal/pycore_opcode.h>
#include <opcode.h>

/* The instruction behind this one: what is in between are caches. */
static _Py_CODEUNIT *behind(_Py_CODEUNIT *instruction) {
    return instruction + 1 + _PyOpcode_Caches[_PyOpcode_Deopt[instruction->op.code]];
}

int code_is_instrumented(PyCodeObject *code) {
    _Py_CODEUNIT *at = _PyCode_CODE(code), *end = at + Py_SIZE(code);
    while (at < end && at->op.code < MIN_INSTRUMENTED_OPCODE) at = behind(at);
    return at < end;
}

static uint8_t of_pair(uint8_t first, uint8_t second) {
    switch (first << 8 | second) {
    case LOAD_FAST << 8 | LOAD_FAST: return LOAD_FAST__LOAD_FAST;
    case LOAD_FAST << 8 | LOAD_CONST: return LOAD_FAST__LOAD_CONST;
    case LOAD_CONST << 8 | LOAD_FAST: return LOAD_CONST__LOAD_FAST;
    case STORE_FAST << 8 | LOAD_FAST: return STORE_FAST__LOAD_FAST;
    case STORE_FAST << 8 | STORE_FAST: return STORE_FAST__STORE_FAST;
    default: return first;
    }
}

void superinstructions_restore(PyCodeObject *code) {
    _Py_CODEUNIT *at = _PyCode_CODE(code), *end = at + Py_SIZE(code);
    for (_Py_CODEUNIT *next; at < end && (next = behind(at)) < end; at = next)
        at->op.code = of_pair(at->op.code, _PyOpcode_Deopt[next->op.code]);
}

#endif
