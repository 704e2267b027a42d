//! [`Tracer`]: a worker's part of tracing.
//!
//! A statement that is not traced costs it no memory. Without a section of the settings it costs a
//! look at a flag.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use env::Random;

use crate::parent::{Extent, Parent};
use crate::sampling::Sampling;
use crate::span::{Begun, Span, SpanId, TraceId};
use crate::spans::Spans;

/// See the module's head.
#[derive(Debug)]
pub struct Tracer {
    /// Where spans go. Constant.
    spans: Arc<Spans>,
    /// There is a sampling.
    is_on: Cell<bool>,
    /// Of the present configuration, for sessions of all.
    sampling: RefCell<Option<Sampling>>,
    /// Makes ids.
    random: RefCell<Random>,
}

impl Tracer {
    /// It traces nothing yet. No two tracers may have one seed.
    pub fn new(spans: Arc<Spans>, seed: u64) -> Tracer {
        Tracer {
            spans,
            is_on: Cell::new(false),
            sampling: RefCell::new(None),
            random: RefCell::new(Random::new(seed)),
        }
    }

    /// From now on these statements are traced.
    pub fn choose(&self, sampling: Option<Sampling>) {
        self.is_on.set(sampling.is_some());
        *self.sampling.borrow_mut() = sampling;
    }

    /// Whether statements of a service may be traced.
    #[inline]
    pub fn looks_at(&self, service: &str) -> bool {
        self.is_on.get() && self.includes(service)
    }

    fn includes(&self, service: &str) -> bool {
        let sampling = self.sampling.borrow();
        sampling.as_ref().is_some_and(|it| it.includes(service))
    }

    /// A statement begins. `None` if it is not traced.
    pub fn begin(&self, text: &[u8], extent: Extent) -> Option<Box<Begun>> {
        let sampling = self.sampling.borrow();
        let parent = Parent::find(text, extent);
        let made = || TraceId(self.id());
        let trace = sampling.as_ref()?.trace(parent.as_ref(), made)?;
        Some(Box::new(Begun {
            trace,
            span: SpanId(self.id()),
            parent: parent.map(|it| it.span),
        }))
    }

    /// It has ended.
    pub fn end(&self, span: Span) {
        self.spans.push(span);
    }

    /// An id, which is never all zeros.
    fn id<const N: usize>(&self) -> [u8; N] {
        let mut random = self.random.borrow_mut();
        loop {
            let mut id = [0; N];
            for part in id.chunks_mut(8) {
                let bytes = random.next_u64().to_ne_bytes();
                part.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
            }
            if id != [0; N] {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sampling::MILLION;

    use super::*;

    #[test]
    fn statements_are_traced_while_there_is_a_sampling() {
        let tracer = Tracer::new(Arc::default(), 1);
        assert!(!tracer.looks_at("shop"));
        assert_eq!(tracer.begin(b"SELECT 1", Extent::Whole), None);
        tracer.choose(Some(Sampling {
            millionths: MILLION,
            services: vec!["shop".into()],
        }));
        assert!(tracer.looks_at("shop") && !tracer.looks_at("other"));
        let (one, two) = (
            tracer.begin(b"SELECT 1", Extent::Whole),
            tracer.begin(b"", Extent::Whole),
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.parent, None);
        assert!(one.trace != two.trace && one.span != two.span);
        let text = b"SELECT 1 /*traceparent='00-0af7651916cd43dd8448eb211c80319c-\
                     b7ad6b7169203331-01'*/";
        let begun = tracer.begin(text, Extent::Whole).unwrap();
        assert_eq!(begun.trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(begun.parent.unwrap().to_string(), "b7ad6b7169203331");
        assert_ne!(begun.parent, Some(begun.span));
        tracer.choose(None);
        assert!(!tracer.looks_at("shop"));
        assert_eq!(tracer.begin(text, Extent::Whole), None);
    }
}
