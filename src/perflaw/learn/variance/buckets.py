"""The recorder's log histograms: four buckets to a power of two."""

from __future__ import annotations


def log_bucket(x: int) -> int:
    """Bucket of the recorder's log histograms: four to a power of two.

    >>> [log_bucket(x) for x in (0, 1, 2, 4, 5, 8, 1000)]
    [0, 4, 8, 12, 13, 16, 43]
    """
    bits = x.bit_length()
    return bits * 4 + ((x >> (bits - 3)) & 3 if bits >= 3 else 0)


def middle(bucket: int) -> float:
    """The middle of a bucket.

    >>> [middle(b) for b in (0, 4, 8, 12, 43)]
    [0.0, 1.0, 2.5, 4.0, 959.5]
    """
    bits, quarter = divmod(bucket, 4)
    if bits < 3:
        return (0.0, 1.0, 2.5)[bits]
    low = (4 + quarter) << (bits - 3)
    return low + ((1 << (bits - 3)) - 1) / 2
