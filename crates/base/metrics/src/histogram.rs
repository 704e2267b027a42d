//! How often which magnitude occurred: a histogram on a logarithmic scale.
//!
//! Values below 64 have a bucket each. Above, each power of two is cut into 64 buckets of one
//! width, so the values of a bucket are never more than 1.6% apart. 3,776 buckets cover all of
//! `u64` in 30 kB.

use sync::atomic::{AtomicU64, Ordering};

/// Buckets in each power of two, as bits. 6 make a bucket at most 1/64 wide, which is 1.6%. 5 would
/// make it 3.1%, but limits on latency are checked to 3%.
const PRECISION_BITS: u32 = 6;

const SUB_COUNT: usize = 1 << PRECISION_BITS;

/// One row for the values below 64, one for each higher power of two.
const BUCKET_COUNT: usize = SUB_COUNT * (64 - PRECISION_BITS as usize + 1);

/// Values that one worker records. The unit is the caller's; names of fields say it.
///
/// It has one writer, so recording is loads and stores, without a locked instruction, as in a
/// [`crate::Counter`]. A second writer would lose values and do no other harm. All orderings are
/// Relaxed: a snapshot of another thread may lack the last values, or have counted one whose sum it
/// lacks.
#[derive(Debug)]
pub struct Histogram {
    /// Occurrences by bucket.
    buckets: Box<[AtomicU64]>,
    /// Sum of all values, wrapping.
    sum: AtomicU64,
    /// Largest value.
    max: AtomicU64,
}

/// A histogram's contents at one moment: plain data that may cross threads and be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSnapshot {
    buckets: Box<[u64]>,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Without values.
    pub fn new() -> Self {
        let buckets = (0..BUCKET_COUNT).map(|_| AtomicU64::new(0)).collect();
        Self {
            buckets,
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }

    /// Records one value.
    #[inline]
    pub fn record(&self, value: u64) {
        let bucket = &self.buckets[bucket(value)];
        update(bucket, |count| count + 1);
        update(&self.sum, |sum| sum.wrapping_add(value));
        update(&self.max, |max| max.max(value));
    }

    /// What was recorded so far.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        HistogramSnapshot {
            buckets: self.buckets.iter().map(read).collect(),
            sum: read(&self.sum),
            max: read(&self.max),
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl HistogramSnapshot {
    /// Without values: where merging starts.
    pub fn empty() -> Self {
        Self {
            buckets: vec![0; BUCKET_COUNT].into_boxed_slice(),
            sum: 0,
            max: 0,
        }
    }

    /// Adds another worker's values.
    pub fn merge(&mut self, other: &Self) {
        for (own, others) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += others;
        }
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Largest value; 0 without values.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// A value that `permille` of a thousand do not exceed, at most 1.6% above the least such
    /// value; 0 without values. 500 is the median, 990 the 99th percentile.
    pub fn quantile(&self, permille: u32) -> u64 {
        assert!(permille <= 1000, "a quantile is a part of the whole");
        let wanted = (u128::from(self.count()) * u128::from(permille))
            .div_ceil(1000)
            .max(1);
        let mut seen = 0u128;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += u128::from(count);
            if wanted <= seen {
                return upper_bound(index).min(self.max);
            }
        }
        0
    }
}

/// Changes a number that has one writer.
#[inline]
fn update(number: &AtomicU64, change: impl Fn(u64) -> u64) {
    number.store(change(number.load(Ordering::Relaxed)), Ordering::Relaxed);
}

/// The bucket of a value.
fn bucket(value: u64) -> usize {
    let Some(power) = value
        .checked_ilog2()
        .filter(|power| PRECISION_BITS <= *power)
    else {
        return stdx::to_usize(value);
    };
    let row = power - PRECISION_BITS;
    // The leading one and the bits after it: 64 to 127.
    let mantissa = value >> row;
    stdx::to_usize(row) * SUB_COUNT + stdx::to_usize(mantissa)
}

/// The largest value of a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let Some(row) = (bucket / SUB_COUNT).checked_sub(1) else {
        return stdx::to_u64(bucket);
    };
    let mantissa = u128::from(stdx::to_u64(bucket % SUB_COUNT + SUB_COUNT));
    let beyond = (mantissa + 1) << row;
    u64::try_from(beyond - 1).expect("the last bucket ends with u64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_all_values() {
        assert_eq!(bucket(u64::MAX), BUCKET_COUNT - 1);
        assert_eq!(upper_bound(BUCKET_COUNT - 1), u64::MAX);
        for index in 0..BUCKET_COUNT - 1 {
            let last = upper_bound(index);
            assert_eq!(bucket(last), index);
            assert_eq!(bucket(last + 1), index + 1);
            let beyond = index.checked_sub(1).map_or(0, upper_bound);
            let width = u128::from(last - beyond);
            // At most 3% of its least value, which limits on latency rely on, and with margin.
            let is_narrow = width == 1 || width * 60 <= u128::from(beyond);
            assert!(is_narrow, "bucket {index} is too wide");
        }
    }

    #[test]
    fn quantiles_are_close_from_above() {
        let histogram = Histogram::new();
        assert_eq!(histogram.snapshot().quantile(500), 0);
        for value in 1..=10_000 {
            histogram.record(value);
        }
        let snapshot = histogram.snapshot();
        for (permille, exact) in [(500, 5000), (950, 9500), (990, 9900), (999, 9990), (1, 10)] {
            let found = snapshot.quantile(permille);
            assert!(
                (exact..=exact + exact / 64).contains(&found),
                "{permille}: {found}"
            );
        }
        assert_eq!(snapshot.quantile(1000), 10_000);
        assert_eq!((snapshot.count(), snapshot.sum()), (10_000, 50_005_000));
    }

    #[test]
    fn merging_is_as_if_one_had_recorded_all() {
        let (one, two, both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for value in [0, 63, 64, 1000, u64::MAX] {
            one.record(value);
            both.record(value);
        }
        for value in [3, 1 << 40] {
            two.record(value);
            both.record(value);
        }
        let mut merged = HistogramSnapshot::empty();
        merged.merge(&one.snapshot());
        merged.merge(&two.snapshot());
        assert_eq!(merged, both.snapshot());
        assert_eq!(merged.max(), u64::MAX);
    }
}
