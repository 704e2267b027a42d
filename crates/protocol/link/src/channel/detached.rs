//! A channel on its way to another worker.

use std::rc::Rc;

use wire::{Deframer, PacketWriter};

use super::{Channel, Compression};
use crate::input::Input;
use crate::packet_memory::PacketShare;
use crate::pieces::Pieces;
use crate::resources::Resources;
use crate::tls::Tls;

/// A channel on its way from one worker to another: it holds no buffer of either.
#[derive(Debug)]
pub(crate) struct DetachedChannel {
    tls: Option<Box<Tls>>,
    compression: Option<Box<Compression>>,
    deframer: Deframer,
    share: PacketShare,
}

impl Channel {
    /// Takes the channel out of its worker. It has to be empty.
    pub(crate) fn detach(mut self) -> DetachedChannel {
        assert!(self.is_empty(), "nothing is left behind");
        self.rest();
        DetachedChannel {
            tls: self.tls,
            compression: self.compression,
            deframer: self.deframer,
            share: self.share,
        }
    }

    /// Makes it a channel of another worker.
    pub(crate) fn attach(detached: DetachedChannel, resources: Rc<Resources>) -> Channel {
        Channel {
            resources,
            tls: detached.tls,
            compression: detached.compression,
            plain: Input::default(),
            deframer: detached.deframer,
            pieces: Pieces::default(),
            out: PacketWriter::new(),
            reply_bytes: 0,
            onlooker: None,
            share: detached.share,
        }
    }
}
