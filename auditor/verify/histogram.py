"""Latency distributions as fio counts them: a number of samples for each bucket (fio stat.h, 64 buckets a power of two)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

LEAST_BEYOND = 10  # samples beyond a percentile, below which it is not judged


class Histogram(NamedTuple):
    """counts: (upper end of the bucket in nanoseconds, samples), ascending; a bucket is at most 1.6 % wide."""

    counts: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, bins: Mapping[int, int]) -> Histogram:
        """From bucket -> samples; empty buckets are left out. Raises ValueError for a negative count."""
        if any(count < 0 for count in bins.values()):
            raise ValueError("a histogram with a negative count")
        return cls(tuple(sorted((ns, count) for ns, count in bins.items() if count)))

    @property
    def samples(self) -> int:
        return sum(count for _, count in self.counts)

    def percentile_ns(self, q: float) -> int | None:
        """The latency that a share q (0 to 1) of the samples did not exceed; None without samples."""
        if not self.counts:
            return None
        sums = list(accumulate(count for _, count in self.counts))
        return self.counts[bisect_left(sums, q * sums[-1] - 1e-9)][0]

    def beyond(self, q: float) -> int:
        """How many samples are expected above a percentile: it is judged with LEAST_BEYOND or more."""
        return int(self.samples * (1 - q) + 1e-9)

    def judged(self, q: float) -> int | None:
        """The percentile in nanoseconds, None with too few samples beyond it."""
        return self.percentile_ns(q) if self.beyond(q) >= LEAST_BEYOND else None

    def share_above(self, ns: int) -> float:
        """Share of the samples that took longer."""
        return sum(count for bucket, count in self.counts if bucket > ns) / self.samples if self.counts else 0.0

    def minus(self, earlier: Histogram) -> Histogram:
        """What was added since an earlier state of the same histogram. Raises ValueError when it is not one."""
        bins = dict(self.counts)
        for ns, count in earlier.counts:
            bins[ns] = bins.get(ns, 0) - count
        return Histogram.of(bins)


def together(histograms: Iterable[Histogram]) -> Histogram:
    """All samples of several histograms."""
    bins: dict[int, int] = {}
    for histogram in histograms:
        for ns, count in histogram.counts:
            bins[ns] = bins.get(ns, 0) + count
    return Histogram.of(bins)
