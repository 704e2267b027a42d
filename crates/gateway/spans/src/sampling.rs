//! [`Sampling`]: which statements are traced.

use std::sync::Arc;

use crate::parent::Parent;
use crate::span::TraceId;

/// The whole, in which a ratio is counted.
pub const MILLION: u64 = 1_000_000;

/// See the module's head. Constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    /// How many of a million statements without a parent are traced.
    pub millionths: u64,
    /// The services whose statements are traced. Empty: all are.
    pub services: Vec<Arc<str>>,
}

impl Sampling {
    /// Whether statements of a service are traced.
    pub fn includes(&self, service: &str) -> bool {
        self.services.is_empty() || self.services.iter().any(|it| **it == *service)
    }

    /// The trace of a statement; `None` if it is not traced. A parent decides it. `made` makes the
    /// id of a trace that begins.
    pub(crate) fn trace(
        &self,
        parent: Option<&Parent>,
        made: impl FnOnce() -> TraceId,
    ) -> Option<TraceId> {
        match parent {
            Some(parent) => parent.is_sampled.then_some(parent.trace),
            None if self.millionths == 0 => None,
            None => Some(made()).filter(|trace| self.takes(*trace)),
        }
    }

    /// Whether a trace that begins is recorded. OpenTelemetry's samplers decide it by the same bits
    /// of the id, so two programs with the same ratio agree.
    fn takes(&self, TraceId(bytes): TraceId) -> bool {
        let [.., a, b, c, d, e, f, g, h] = bytes;
        let number = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
        u128::from(number) * u128::from(MILLION) < u128::from(self.millionths) << 63
    }
}

#[cfg(test)]
mod tests {
    use env::Random;
    use opentelemetry::trace::SpanKind;
    use opentelemetry_sdk::trace::{Sampler, SamplingDecision, ShouldSample};

    use crate::span::SpanId;

    use super::*;

    fn sampling(millionths: u64) -> Sampling {
        Sampling {
            millionths,
            services: Vec::new(),
        }
    }

    fn id(random: &mut Random) -> TraceId {
        let (high, low) = (random.next_u64(), random.next_u64());
        TraceId((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }

    #[test]
    fn a_parent_decides() {
        let trace = TraceId([7; 16]);
        let parent = |is_sampled| Parent {
            trace,
            span: SpanId([1; 8]),
            is_sampled,
        };
        let unasked = || unreachable!("the trace has begun");
        for millionths in [0, 1, MILLION] {
            let sampling = sampling(millionths);
            let traced = |is_sampled| sampling.trace(Some(&parent(is_sampled)), unasked);
            assert_eq!(traced(true), Some(trace));
            assert_eq!(traced(false), None);
        }
    }

    #[test]
    fn a_ratio_is_held_as_by_the_sampler_of_opentelemetry() {
        let mut random = Random::new(3);
        for (millionths, ratio) in [(0, 0.0), (1, 0.000_001), (250_000, 0.25), (MILLION, 1.0)] {
            let theirs = Sampler::TraceIdRatioBased(ratio);
            let ours = sampling(millionths);
            let mut count = 0;
            for _ in 0..4000 {
                let trace = id(&mut random);
                let taken = ours.trace(None, || trace).is_some();
                let decided = theirs.should_sample(
                    None,
                    opentelemetry::trace::TraceId::from_bytes(trace.0),
                    "",
                    &SpanKind::Client,
                    &[],
                    &[],
                );
                let expected = decided.decision == SamplingDecision::RecordAndSample;
                assert_eq!(taken, expected, "{trace} of {millionths}");
                count += u64::from(taken);
            }
            let expected = millionths * 4000 / MILLION;
            assert!(count.abs_diff(expected) < 200, "{count} of {expected}");
        }
        let (least, greatest) = (TraceId([0; 16]), TraceId([0xff; 16]));
        assert!(sampling(1).takes(least) && !sampling(MILLION - 1).takes(greatest));
        assert!(sampling(MILLION).takes(greatest) && !sampling(0).takes(least));
    }

    #[test]
    fn services_are_chosen_by_their_names() {
        let all = sampling(MILLION);
        assert!(all.includes("shop"));
        let some = Sampling {
            services: vec!["shop".into(), "reports".into()],
            ..all
        };
        assert!(some.includes("shop") && some.includes("reports") && !some.includes("sho"));
    }
}
