#include "decimal.h"

#include <stdlib.h>
#include <string.h>

enum { SCALE = 20, NS_SCALE = SCALE - 3, MOST_DIGITS = 37, MOST_EXPONENT = JSON_DIGITS + 20 };
static const int64_t MAX_NS = INT64_C(1) << 62;
typedef unsigned __int128 Wide;

/* digits * 10^exponent, and less than a unit of the last digit more if is_rounded. */
typedef struct Parts {
    Wide digits;
    int count, exponent, is_negative, is_rounded;
} Parts;

static int split(Slice text, Parts *parts) {
    const char *at = text.at, *end = at + text.size;
    *parts = (Parts){0};
    if (at < end && (*at == '-' || *at == '+')) parts->is_negative = *at++ == '-';
    int seen = 0, is_fraction = 0;
    for (; at < end; at++) {
        if (*at == '.' && !is_fraction) {
            is_fraction = 1;
            continue;
        }
        unsigned digit = (unsigned)(*at - '0');
        if (digit > 9) break;
        seen++;
        if (seen > 2 * JSON_DIGITS) return 0;
        parts->exponent -= is_fraction;
        if (parts->count == MOST_DIGITS) {
            parts->exponent++;
            parts->is_rounded |= digit != 0;
        } else if (parts->count || digit) {
            parts->digits = parts->digits * 10 + digit;
            parts->count++;
        }
    }
    if (!seen) return 0;
    if (at < end && (*at | 32) == 'e') {
        int is_down = 0, exponent = 0;
        if (++at < end && (*at == '-' || *at == '+')) is_down = *at++ == '-';
        const char *first = at;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            if ((exponent = exponent * 10 + *at - '0') > MOST_EXPONENT) return 0;
        if (at == first) return 0;
        parts->exponent += is_down ? -exponent : exponent;
    }
    return at == end;
}

static Wide power(int exponent) {
    Wide value = 1;
    while (exponent-- > 0) value *= 10;
    return value;
}

/* Most stamps have up to three decimals: their ns are a whole number. */
static int simple_stamp(Slice text, Stamp *stamp) {
    static const int64_t UNITS[] = {1000, 100, 10, 1};
    const char *at = text.at, *end = at + text.size;
    if (text.size > 17 || !text.size) return 0;
    int64_t value = 0, fraction = 0, decimals = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++) value = value * 10 + (*at - '0');
    if (at == text.at) return 0;
    if (at < end && *at == '.') {
        if (end - at > 4 || end - at < 2) return 0;
        for (at++; at < end && *at >= '0' && *at <= '9'; at++, decimals++) fraction = fraction * 10 + (*at - '0');
    }
    if (at < end || value >= MAX_NS / 1000 - 1) return 0;
    stamp->ns = value * 1000 + fraction * UNITS[decimals];
    stamp->is_exact = 1;
    stamp->has_fraction = fraction != 0;
    return 1;
}

int decimal_stamp(Slice text, Stamp *stamp) {
    if (simple_stamp(text, stamp)) return 1;
    Parts parts;
    if (!split(text, &parts)) return 0;
    int shift = parts.exponent + SCALE;
    Wide units = parts.digits;
    if (units && shift > 0) {
        if (parts.count + shift > MOST_DIGITS) return 0;
        units *= power(shift);
    } else if (shift < 0) {
        Wide divisor = power(-shift > MOST_DIGITS ? MOST_DIGITS : -shift);
        parts.is_rounded |= units % divisor != 0 || (units && -shift > MOST_DIGITS);
        units = -shift > MOST_DIGITS ? 0 : units / divisor;
    }
    if (parts.is_rounded) units |= 1; /* no tie is taken for one by that */
    if (units >= (Wide)MAX_NS * power(NS_SCALE)) return 0;
    *stamp = (Stamp){.units = parts.is_negative ? -(__int128)units : (__int128)units, .has_fraction = units % power(SCALE) != 0};
    return 1;
}

static __int128 units_of(const Stamp *stamp) {
    return stamp->is_exact ? (__int128)stamp->ns * (__int128)power(NS_SCALE) : stamp->units;
}

static int round_units(__int128 units, int64_t *ns) {
    Wide size = (Wide)(units < 0 ? -units : units), unit = power(NS_SCALE);
    Wide whole = size / unit, rest = size % unit;
    whole += rest > unit / 2 || (rest == unit / 2 && whole & 1);
    if (whole >= (Wide)MAX_NS) return 0;
    *ns = units < 0 ? -(int64_t)whole : (int64_t)whole;
    return 1;
}

int decimal_ns(const Stamp *stamp, int64_t *ns) {
    if (!stamp->is_exact) return round_units(stamp->units, ns);
    *ns = stamp->ns;
    return 1;
}

int decimal_sum_ns(const Stamp *one, const Stamp *other, int64_t *ns) {
    if (!one->is_exact || !other->is_exact) return round_units(units_of(one) + units_of(other), ns);
    *ns = one->ns + other->ns;
    return *ns < MAX_NS;
}

int decimal_double(Slice text, double *value) {
    static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    while (text.size && strchr(" \t\n\r\f\v", *text.at) && *text.at) text.at++, text.size--;
    while (text.size && strchr(" \t\n\r\f\v", text.at[text.size - 1]) && text.at[text.size - 1]) text.size--;
    Parts parts;
    char copy[3 * JSON_DIGITS];
    if (text.size >= sizeof copy || !split(text, &parts)) return 0;
    if (text.size > JSON_DIGITS && !memchr(text.at, 'e', text.size) && !memchr(text.at, 'E', text.size)) return 0;
    if (!parts.is_rounded && parts.digits < (Wide)1 << 53 && parts.exponent >= -22 && parts.exponent <= 22) {
        double digits = (double)(uint64_t)parts.digits, scale = POWERS[abs(parts.exponent)];
        *value = parts.exponent < 0 ? digits / scale : digits * scale; /* both are exact, so it is rounded once */
        if (parts.is_negative) *value = -*value;
        return 1;
    }
    memcpy(copy, text.at, text.size);
    copy[text.size] = 0;
    *value = strtod(copy, NULL);
    return 1;
}
